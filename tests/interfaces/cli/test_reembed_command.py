"""The command that gives a bank another embedder."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank

Command = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with MemoryBank.open(tmp_path / "crew", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add_many([f"price {number} of fish" for number in range(12)])
    return tmp_path / "crew"


def test_it_says_what_it_would_do_and_does_it(tiermem: Command, folder: Path) -> None:
    with MemoryBank.at(folder) as bank:
        before = bank.state_hash()
    told = tiermem("store", "reembed", folder, "--embedder", "none", "--dry-run")
    assert told.code == 0
    assert "would embed 12 texts with none, instead of offline/wordllama" in told.out
    assert "% stay the nearest (12 texts compared)" in told.out
    with MemoryBank.at(folder) as bank:
        assert bank.state_hash() == before
    done = tiermem("store", "reembed", folder, "--embedder", "none")
    assert done.code == 0
    assert "embedded 12 texts with none" in done.out
    assert "tiermem store sync" in done.out
    assert "embedder\tnone" in tiermem("status", folder).out
    assert json.loads(tiermem("status", folder, "--json").out)["embedder"] == "none"
    assert "already" in tiermem("store", "reembed", folder, "--embedder", "none").out


def test_it_takes_an_embedder_from_settings_and_tells_as_json(
    tiermem: Command, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text("embedder: {provider: none}\n")
    done = tiermem("store", "reembed", folder, "--config", tmp_path / "own.yaml", "--json")
    found = json.loads(done.out)
    assert (found["after"], found["texts"], found["dry_run"]) == ("none", 12, False)
    back = tiermem("store", "reembed", folder, "--set", "embedder.provider=offline")
    assert back.code == 0


def test_what_is_wrong_is_said(tiermem: Command, folder: Path, tmp_path: Path) -> None:
    assert "no embedder is named" in tiermem("store", "reembed", folder).err
    assert "nonsense" in tiermem("store", "reembed", folder, "--embedder", "nonsense").err
    assert tiermem("store", "reembed", tmp_path / "gone", "--embedder", "none").code != 0
