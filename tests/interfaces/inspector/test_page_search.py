"""A search in an export finds what the server finds."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from inspected_sites import ask, looked_at

from agents.interfaces.inspector import page_files
from agents.interfaces.inspector.export import exported

_SCRIPT = """
import { readFileSync } from "node:fs";
import { openEmbedded } from "#embedded";
const provider = await openEmbedded(readFileSync("data.txt", "utf8"));
const found = [];
for (const q of JSON.parse(process.argv[2])) {
  found.push(await provider.get("search", { run: 0, q }));
}
console.log(JSON.stringify(found));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_an_export_finds_words_agents_and_ids_as_the_server_does(
    rumor: Path, tmp_path: Path
) -> None:
    with looked_at(rumor) as site:
        memory = ask(site, "memories", agent="agent_02", tick=12)["rows"][3]
        first, *_, last = memory["text"].split()
        queries = [f"{last} {first.upper()}", memory["id"], "AGENT_03", "zz top", "", '" OR *']
        expected = [ask(site, "search", q=each, limit=500) for each in queries]
        file = exported(site).decode()
    data = re.search(r'id="inspector-data">(.*?)</script>', file, re.DOTALL)
    assert data is not None
    (tmp_path / "data.txt").write_text(data[1])
    names = ("embedded", "refused")
    for name in names:
        found = page_files.page_file(f"{name}.js")
        assert found is not None
        (tmp_path / f"{name}.js").write_bytes(found.data)
    modules = {f"#{name}": f"./{name}.js" for name in names}
    package = {"type": "module", "imports": modules}
    (tmp_path / "package.json").write_text(json.dumps(package))
    (tmp_path / "asking.js").write_text(_SCRIPT)
    command = ["node", "asking.js", json.dumps(queries)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    for query, own, found in zip(queries, expected, json.loads(done.stdout), strict=True):
        assert found["total"] == own["total"], query
        key = ["what", "agent", "tick", "memory_id", "text"]
        rows = [
            sorted([str(row[name]) for name in key] for row in each["rows"])
            for each in (own, found)
        ]
        assert rows[0] == rows[1], query
    assert [each["total"] > 0 for each in expected] == [True, True, True, False, False, False]
