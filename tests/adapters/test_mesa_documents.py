"""The page about Mesa: its program runs, and its commands read the run."""

import re
from pathlib import Path

import pytest

pytest.importorskip("mesa")

import tiermem.mesa
from banks import ROOT
from tiermem import MemoryBank
from tiermem.simulation.runs.why import decision

PAGE = (ROOT / "docs/howto/mesa.md").read_text()


@pytest.mark.slow
def test_the_program_runs_and_traders_refuse_cheats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    quick = program.replace("Memories(self, folder,", "Memories(self, folder, storage=MANUAL,")
    assert quick != program
    exec(compile(quick, "docs/howto/mesa.md", "exec"), {"MANUAL": {"sync": "manual"}})
    out = capsys.readouterr().out
    with MemoryBank.at("run-folder/bank") as bank:
        assert f"state {bank.state_hash()[:16]}" in out
        assert bank.tick == 20
        names = bank.agents()
    assert (tmp_path / "run-folder/report.html").is_file()
    deeds = [
        deed
        for name in names
        for tick in range(15, 21)
        for deed in decision(Path("run-folder"), name, tick).did
    ]
    refused = [deed for deed in deeds if deed.name == "refuse"]
    assert refused
    assert {deed.arguments["trader"] for deed in refused} <= {"Trader_1", "Trader_2"}


def test_the_page_names_what_the_module_gives() -> None:
    for name in ("Memories", "make_memory_component"):
        assert name in tiermem.mesa.__all__
        assert name in PAGE
    methods = re.findall(r"agent\.memory\.(\w+)", PAGE)
    assert {"add", "recalled", "text", "search", "kept"} <= {*methods}
    assert all(hasattr(tiermem.mesa.ModelMemory, name) for name in methods)
