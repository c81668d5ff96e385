"""The examples in documents and docstrings run, and the documents name what exists."""

import doctest
import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import tiermem
from banks import ROOT
from tiermem import Hit, MemoryBank, adapting
from tiermem.config.load import load_settings
from tiermem.interfaces import tokens
from tiermem.simulation import (
    Action,
    Answer,
    Ask,
    Conversation,
    Insight,
    Observation,
    Outcome,
    Persona,
    Policy,
    Remark,
    Run,
    Say,
    World,
)
from tiermem.simulation.policies.interview import read_questions
from tiermem.simulation.runs.edits import read_edits
from tiermem.simulation.runs.scenario import check_scenario, try_world
from tiermem.simulation.sweeps.fit import read_data, read_fit
from tiermem.simulation.sweeps.sweep import read_sweep
from tiermem.simulation.world_template import new_world
from tiermem.simulation.worlds.town import Town

BLOCK = re.compile(r"^```python(?P<flags>[^\n]*)\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
GUIDES = (
    "guide",
    "temperature",
    "recall",
    "notes",
    "simulations",
    "howto/write-a-world",
    "howto/test-your-own",
    "howto/classic-agents",
    "howto/analyse",
    "howto/effect",
    "howto/notebooks",
    "howto/your-model",
    "howto/telling",
    "howto/profiles",
    "architecture/current/agents",
)
EXAMPLES = [
    match["code"]
    for page in ("README.md", *(f"docs/{name}.md" for name in GUIDES))
    for match in BLOCK.finditer((ROOT / page).read_text())
    if "no-run" not in match["flags"] and "file=" not in match["flags"]
]
FILES = re.compile(r"^```\w+ file=(?P<name>\S+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)

SOURCE = ROOT / "src/agents"
ROOMS = [path.parent.relative_to(SOURCE) for path in SOURCE.rglob("__init__.py")]
DOCUMENTS = sorted(
    path.relative_to(ROOT)
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks/README.md")
)
FOLDERS = {"src", "tests", "docs", "config", "simulations", "benchmarks"}
ROOM_NAMES = {room.parts[0] for room in ROOMS if room.parts}


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_the_documents_runs(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = EXAMPLES[number].replace(
        'open("bank-folder")', 'open("bank", storage={"sync": "manual"})'
    )
    exec(compile(code, f"README example {number}", "exec"), {})
    promised = [line.removeprefix("    # ") for line in code.splitlines() if "    # - " in line]
    assert "\n".join(promised) in capsys.readouterr().out


def files_of(page: str) -> dict[str, str]:
    return {match["name"]: match["text"] for match in FILES.finditer((ROOT / page).read_text())}


def test_the_settings_of_the_temperature_page_are_settings() -> None:
    page = (ROOT / "docs/temperature.md").read_text()
    (text,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    rules = load_settings(yaml.safe_load(text)).temperature.rules
    assert [rule["name"] for rule in rules] == ["completed", "old gossip"]


def test_the_temperature_page_names_every_preset() -> None:
    page = (ROOT / "docs/temperature.md").read_text()
    presets = sorted(path.stem for path in (ROOT / "config/presets").iterdir())
    about_finding = ["hybrid", "quality", "vector", "weighted-sum"]
    classic = ["generative-agents", "memorybank", "recency"]
    others = [name for name in presets if name not in (*about_finding, *classic)]
    assert len(others) == 4
    assert all(f"| `{name}` |" in page for name in others)
    finding = (ROOT / "docs/recall.md").read_text()
    assert all(f"| `{name}` |" in finding for name in about_finding)
    agents = (ROOT / "docs/howto/classic-agents.md").read_text()
    assert all(f"`{name}`" in agents for name in classic)


def test_the_world_of_the_guide_is_the_one_that_new_world_writes_and_runs(tmp_path: Path) -> None:
    for path in new_world("desert", tmp_path / "new")[:2]:
        (tmp_path / path.name).write_text(files_of("docs/howto/write-a-world.md")[path.name])
        assert (tmp_path / path.name).read_text() == path.read_text()
    settings = load_settings(tmp_path / "desert.yaml", overrides={"storage.sync": "manual"})
    with Run.create(tmp_path / "run", settings, scenario=tmp_path) as run:
        *_, last = run.advance(100)
    assert last["metrics"] == {"drinks": 20}  # two agents, thirsty in ten ticks, never wrong


@pytest.mark.long
def test_the_page_on_testing_is_a_program_that_passes_and_fails_as_it_says(tmp_path: Path) -> None:
    files = files_of("docs/howto/test-your-own.md")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "9 passed" in done.stdout, done.stdout
    salted = files["word_hashes.py"].replace(
        "hashlib.sha256(word.encode()).digest()[0]", "hash(word)"
    )
    (tmp_path / "word_hashes.py").write_text(salted)
    command += ["-k", "another_process"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "BrokenLaw: TestWordHashes: another process gives the same vectors" in done.stdout


def test_the_guide_names_every_field_and_method_of_worlds_and_policies() -> None:
    page = (ROOT / "docs/howto/write-a-world.md").read_text()
    fields = dict(re.findall(r"^\| (`\w+`|a memory) \| (`.*) \|$", page, re.MULTILINE))
    of_a_memory = re.findall(r"`(\w+)`", fields["a memory"])
    for kind in (
        Observation, Persona, Remark, Conversation, Say, Action, Outcome, Ask, Answer, Hit, Insight,
    ):  # fmt: skip
        row = fields[f"`{kind.__name__}`"]
        named = {*re.findall(r"`(\w+)`", row), *(of_a_memory if "those of a memory" in row else ())}
        assert named == {*kind._fields}, kind
    rows = re.findall(r"^\| ([\w ]*?) ?\| `(\w+)(?:\(|`)", page, re.MULTILINE)
    methods: dict[str, list[str]] = {}
    of = ""
    for first, name in rows:
        of = first or of
        methods.setdefault(of, []).append(name)
    for of, protocol in (("world", World), ("policy", Policy)):
        assert methods[of] == [name for name in vars(protocol) if not name.startswith("_")]
    assert methods["a policy may have"] == ["decide_all", "say", "flush"]


def test_the_scenario_of_the_readme_is_sound(tmp_path: Path) -> None:
    (scenario,) = FILES.finditer((ROOT / "README.md").read_text())
    path = tmp_path / scenario["name"]
    path.write_text(scenario["text"])
    settings = load_settings(path)
    check_scenario(settings, [])
    assert settings.simulation.ticks == 120


def test_the_guide_to_the_inspector_names_the_run_that_it_makes() -> None:
    guide = (ROOT / "docs/howto/inspect.md").read_text()
    (scenario,) = re.findall(r"^tiermem run (\S+)$", guide, re.MULTILINE)
    seed = load_settings(ROOT / scenario).seed
    named = re.findall(r"^tiermem (?:inspect|report) (runs/market\S*)", guide, re.MULTILINE)
    assert set(named) == {f"runs/{Path(scenario).stem}-{seed}"}


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_settings_edits_and_sweep_of_the_guide_are_taken(tmp_path: Path) -> None:
    guide = (ROOT / "docs/simulations.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    kinds = []
    for number, block in enumerate(blocks):
        path = tmp_path / f"{number}.yaml"
        path.write_text(block)
        if block.startswith("- "):
            assert len(read_edits(path)) == 6
            kinds.append("edits")
        elif block.startswith("scenario:"):
            for name in ("market", "rumor"):
                shutil.copy(ROOT / f"simulations/{name}.yaml", tmp_path)
            kinds.append(f"sweep of {len(read_sweep(path).runs())}")
        else:
            settings = load_settings(path, base={"simulation": {"world": "market"}})
            check_scenario(settings, [])
            kinds.append(settings.simulation.policy)
    assert kinds == ["rules", "scripted", "llm", "rules", "edits", "sweep of 60", "sweep of 960"]


def test_the_fit_of_the_howto_is_taken(tmp_path: Path) -> None:
    page = (ROOT / "docs/howto/fit.md").read_text()
    for kind, name in (("yaml", "fit.yaml"), ("csv", "seen.csv")):
        (text,) = re.findall(rf"^```{kind}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        (tmp_path / name).write_text(text)
    shutil.copy(ROOT / "simulations/rumor.yaml", tmp_path)
    data = read_data(tmp_path / "seen.csv", read_fit(tmp_path / "fit.yaml"))
    assert data.ticks == [10, 20, 30]


def test_the_models_of_the_howto_can_be_asked(tmp_path: Path) -> None:
    page = (ROOT / "docs/howto/language-models.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 7
    path = tmp_path / "scenario.yaml"
    for block in blocks:
        path.write_text(block)
        simulation = {"world": "market", "agents": 12, "policy": "llm"}
        check_scenario(load_settings(path, base={"simulation": simulation}), [])


@pytest.mark.parametrize("scenario", sorted((ROOT / "simulations").glob("*.yaml")), ids=str)
def test_the_shipped_scenarios_and_sweeps_are_sound(scenario: Path) -> None:
    if "sweep" in scenario.name or "classics" in scenario.name:
        cells = {
            "market_sweep.yaml": 90, "household_sweep.yaml": 240, "rumor_sweep.yaml": 40,
            "site_sweep.yaml": 30, "market_llm_sweep.yaml": 12,
            "market_classics.yaml": 260, "household_classics.yaml": 260,
            "rumor_classics.yaml": 240, "market_seller_classics.yaml": 120,
            "household_orders_classics.yaml": 120,
            "minority_sweep.yaml": 72, "minority_tiers_sweep.yaml": 36,
            "helping_sweep.yaml": 30, "helping_tiers_sweep.yaml": 12,
        }  # fmt: skip
        assert len(read_sweep(scenario).runs()) == cells[scenario.name]
    else:
        check_scenario(load_settings(scenario), [])


def test_the_shipped_survey_asks_of_every_place_of_its_village() -> None:
    asked = read_questions(ROOT / "simulations/surveys/village.yaml")
    world = try_world(load_settings(ROOT / "simulations/village_llm.yaml"), [])
    assert isinstance(world, Town)
    told = " ".join(text for facts in world.facts().values() for text in facts)
    places = re.findall(r"at the (\w+) on day", told)
    assert len(places) == 2
    by_name = {each.name: each for each in asked}
    assert {*places} < {*by_name["place"].options}
    assert [each.kind for each in asked] == ["choice", "choice", "scale", "text"]


@pytest.mark.parametrize("module", ["tiermem", "tiermem.langgraph", "tiermem.memory.tiers"])
def test_the_examples_in_docstrings_run(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert (failed, tried > 0) == (0, True)


def headings_of(path: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    lines = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    text = (ROOT / document).read_text()
    for target, _, anchor in re.findall(r"\]\((?!https?:)([^)#]+)(#([^)]+))?\)", text):
        path = (ROOT / document).parent / target
        assert path.exists(), target
        assert not anchor or anchor in headings_of(path), f"{target}#{anchor}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_row_stands_in_a_table_with_a_head(document: Path) -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / document).read_text(), flags=re.MULTILINE | re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        head, _, rest = table.partition("\n")
        assert re.match(r"\|[-:| ]+\|$", rest.partition("\n")[0]), head


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_paths_in_documents_exist(document: Path) -> None:
    missing = []
    for path in re.findall(r"`([\w.*/-]+)`", (ROOT / document).read_text()):
        top, *below = path.split("/")
        # A bank has folders notes/ and memory/, too: Markdown lies there, and AGENT is any name.
        is_code = path.endswith((".py", "/")) or top in FOLDERS
        is_ours = not below or (top in FOLDERS | ROOM_NAMES and not re.search("[A-Z]{4}", path))
        if is_code and is_ours and not exists(path):
            missing.append(path)
    assert missing == []


def exists(path: str) -> bool:
    if "/" not in path:  # a file's name alone
        return any(any((ROOT / top).rglob(path)) for top in ("src", "tests", "benchmarks", "docs"))
    return any(any(folder.glob(path.rstrip("/"))) for folder in (ROOT, SOURCE))


def test_the_tree_of_the_house_has_every_room() -> None:
    page = (ROOT / "docs/architecture/house.md").read_text()
    (tree,) = re.findall(r"^```\nsrc/agents/.*?\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    above: list[str] = []
    rooms = []
    for line in tree.splitlines():
        indent, name = re.match(r"^( +)(\w+)/ ", line).groups()  # type: ignore[union-attr]
        above[len(indent) // 2 - 1 :] = [name]
        rooms.append("/".join(above))
    assert sorted(rooms) == sorted(str(room) for room in ROOMS if room.parts)


def test_the_page_of_files_names_every_file_of_a_bank(tmp_path: Path) -> None:
    page = (ROOT / "docs/reference/files.md").read_text()
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        bank.agent("alice").notes.append("a note", "MEMORY.md")
        tokens.create(tmp_path / "bank", "alice")
        names = {path.name for path in (tmp_path / "bank").iterdir()}
    assert len(names) == 8
    assert [name for name in names - {"notes"} if f"`{name}`" not in page] == []
    assert "`notes/AGENT/MEMORY.md`" in page


def test_the_module_page_names_every_public_name() -> None:
    page = (ROOT / "docs/architecture/current/tiermem.md").read_text()
    errors = {
        name
        for name in tiermem.__all__
        if isinstance(each := getattr(tiermem, name), type) and issubclass(each, Exception)
    }
    for name in set(tiermem.__all__) - errors - {"__version__"}:
        assert f"`{name}`" in page, name


def test_the_module_page_names_all_that_adapters_are_made_with() -> None:
    page = (ROOT / "docs/architecture/current/tiermem.md").read_text()
    assert [name for name in adapting.__all__ if f"`{name}`" not in page] == []


@pytest.mark.parametrize("kind", [tiermem.MemoryBank, tiermem.AgentMemory])
def test_the_module_page_names_every_call_and_no_other(kind: type) -> None:
    page = (ROOT / "docs/architecture/current/tiermem.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{kind.__name__}` |")]
    calls = re.findall(r"`(\w+)`", re.sub(r"`(notes|social)` \(.*?\)", r"`\1`", row))[1:]
    assert sorted(calls) == sorted(
        name for name in dir(kind) if not name.startswith("_") and name != "engine"
    )
