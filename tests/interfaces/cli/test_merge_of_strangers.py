"""``tiermem store merge`` of a stranger's run runs nothing, calls nobody, trusts nothing."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import run_command, write_scenario

from agents import MemoryBank, Untrusted
from openai_server import OpenAIServer
from strangers import stranger

pytestmark = pytest.mark.slow_after(1)

ENGINES = {"one bank": (), "spread": ("--engine", "processes", "--workers", 2)}


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", "secret")


def made(
    folder: Path, *engine: object, llm: dict[str, Any] | None = None, **simulation: Any
) -> Path:
    """A run that a stranger made."""
    with stranger(folder):
        scenario = write_scenario(folder / "scenario", **simulation)
        if llm is not None:
            scenario.write_text(scenario.read_text() + yaml.safe_dump({"llm": llm}))
        done = run_command("run", scenario, "--out", folder / "run", "--ticks", 2, *engine)
        assert done.code == 0, done.err
    shutil.rmtree(folder / "scenario")
    return folder / "run"


def change(run: Path, **sections: Any) -> None:
    """Write other settings into the run's folder, as a stranger may."""
    config = run / "config.yaml"
    settings = yaml.safe_load(config.read_text())
    for name, value in sections.items():
        settings[name] = {**settings.get(name, {}), **value}
    config.write_text(yaml.safe_dump(settings))


def endpoint(server: OpenAIServer) -> dict[str, Any]:
    config = {"openai_base_url": server.url, "model": "m", "embedding_dims": 8}
    return {"provider": "openai", "config": config}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_its_code_is_not_run(tmp_path: Path, engine: tuple[object, ...]) -> None:
    run, out, seen = made(tmp_path, *engine), tmp_path / "one", tmp_path / "seen"
    code = run / "code" / "worlds_for_tests.py"
    code.write_text(f"import pathlib\npathlib.Path({str(seen)!r}).touch()\n{code.read_text()}")
    refused = run_command("store", "merge", run, "--out", out)
    assert refused.is_one_error(
        1, "run the code of 'worlds_for_tests:Stones'", "tiermem store trust"
    )
    assert not out.exists()
    assert not seen.exists()
    assert run_command("store", "trust", run).code == 0
    assert run_command("store", "merge", run, "--out", out).code == 0
    assert seen.exists()


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("section", ["llm", "embedder"])
def test_its_servers_are_not_asked(
    tmp_path: Path, section: str, engine: tuple[object, ...]
) -> None:
    run, out = made(tmp_path, *engine, world="market", agents=6), tmp_path / "one"
    with OpenAIServer() as server:
        change(run, **{section: endpoint(server)}, simulation={"policy": "llm"})
        refused = run_command("store", "merge", run, "--out", out)
        assert refused.is_one_error(1, server.url, "tiermem store trust")
        assert not server.requests
    assert not out.exists()


def test_a_copy_of_a_run_without_wishes_is_no_more_trusted_than_the_run(tmp_path: Path) -> None:
    run = made(tmp_path, *ENGINES["spread"], world="market", agents=6)
    out = tmp_path / "one"
    assert run_command("store", "merge", run, "--out", out).code == 0  # nothing but ours runs
    assert not (out / "run.seal").exists()
    for folder in (run, out):
        change(folder, simulation={"world": "subprocess:Popen"})
        assert run_command("resume", folder).is_one_error(1, "subprocess:Popen")


def test_what_its_bank_remembers_is_no_more_trusted_in_the_copy(tmp_path: Path) -> None:
    """The settings of the run say nothing of a server any more; those of its bank do."""

    def tell(folder: Path) -> None:
        with MemoryBank.open(folder / "bank") as bank:
            bank.agent("a").add_messages([{"role": "user", "content": "hello"}])

    with OpenAIServer() as server:
        run, out = made(tmp_path, llm=endpoint(server), world="market", agents=6), tmp_path / "one"
        config = run / "config.yaml"
        settings = yaml.safe_load(config.read_text())
        del settings["llm"]
        config.write_text(yaml.safe_dump(settings))
        with pytest.raises(Untrusted, match="LLM openai"):
            tell(run)
        assert run_command("store", "merge", run, "--out", out).code == 0
        with pytest.raises(Untrusted, match="LLM openai"):
            tell(out)
        assert not server.requests
