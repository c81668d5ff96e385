"""Edits: changes of memories with which a branch of a run begins."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...bank.agent_memory import AgentMemory
from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...config.yaml_files import read_file
from ...errors import ConfigError, RunError, TierMemError
from ...memory.records import Memory, id_prefix, whole_id

_FORM = (
    "an edit is {agent: alice, do: add, content: …, tier: pinned}, or "
    "{agent: alice, do: pin|unpin|set_tier|reword|delete|forget, memory: ID} with `matching: text` "
    "in the place of `memory` for every memory that holds this text; set_tier has a tier, and "
    "reword the new content"
)
_CHOICE = ("agent", "do", "memory", "matching")
_KEYS = {
    "add": ("agent", "do", "content", "tier", "metadata"),
    "pin": _CHOICE,
    "unpin": _CHOICE,
    "set_tier": (*_CHOICE, "tier"),
    "reword": (*_CHOICE, "content"),
    "delete": _CHOICE,
    "forget": _CHOICE,
}
"""The keys of an edit, by its ``do``."""


def read_edits(path: Path) -> list[Mapping[str, Any]]:
    """The edits in a YAML file; ConfigError if an edit has the wrong form."""
    document = read_file(path)
    if not isinstance(document.value, list):
        raise ConfigError(f"{document.source}: a list of edits is needed", hint=_FORM)
    return check_edits(document.value, lambda place: document.place((place,)))


def check_edits(edits: Sequence[Any], where: str | Callable[[int], str]) -> list[Mapping[str, Any]]:
    """The edits themselves; ConfigError if one has the wrong form. ``where`` says where one is."""
    for index, edit in enumerate(edits):
        place = where if isinstance(where, str) else where(index)
        _check_edit(edit, f"{place}: edit {index + 1}")
    return list(edits)


def _check_edit(edit: Any, where: str) -> None:
    if not isinstance(edit, dict) or not isinstance(edit.get("agent"), str):
        raise ConfigError(f"{where} names no agent", hint=_FORM)
    if edit.get("do") not in list(_KEYS):
        raise ConfigError(f"{where} has no such `do`: {edit.get('do')!r:.40}", hint=_FORM)
    unknown = [key for key in edit if key not in _KEYS[edit["do"]]]
    if unknown:
        raise ConfigError(f"{where} has an unknown key {unknown[0]!r:.40}", hint=_FORM)
    if edit["do"] in ("add", "reword") and not isinstance(edit.get("content"), str):
        raise ConfigError(f"{where} {edit['do']}s nothing: it needs a content", hint=_FORM)
    if edit["do"] != "add" and ("memory" in edit) == ("matching" in edit):
        raise ConfigError(f"{where} needs either memory or matching", hint=_FORM)
    if edit["do"] == "set_tier" and "tier" not in edit:
        raise ConfigError(f"{where} needs a tier", hint=_FORM)


def begin_branch(folder: Path, settings: Settings, edits: Sequence[Mapping[str, Any]]) -> None:
    """Give the bank of a branch its settings and its edits."""
    with MemoryBank.open(folder, settings, storage={"sync": "manual"}) as bank:
        apply_edits(bank, edits)


def apply_edits(bank: MemoryBank, edits: Sequence[Mapping[str, Any]]) -> None:
    """Change the memories of a branch's bank as the edits say, in one commit."""
    with bank.transaction():
        for index, edit in enumerate(edits, start=1):
            try:
                _apply(bank.agent(edit["agent"]), edit)
            except TierMemError as error:
                raise RunError(
                    f"edit {index} can't be made: {error.why}", hint=error.hint
                ) from error


def _apply(agent: AgentMemory, edit: Mapping[str, Any]) -> None:
    do = edit["do"]
    if do == "add":
        agent.add(edit["content"], edit.get("tier", "normal"), edit.get("metadata"))
        return
    for memory in _chosen(agent, edit):
        if do == "reword":
            agent.update(memory.id, edit["content"])
        elif do == "pin":
            agent.pin(memory.id)
        elif do == "unpin":
            agent.unpin(memory.id)
        elif do == "set_tier":
            agent.set_tier(memory.id, edit["tier"])
        elif do == "forget":  # also a pinned memory: an edit is not the agent's own doing
            agent.unpin(memory.id)
            agent.forget(memory.id)
        else:
            agent.delete(memory.id)


def _chosen(agent: AgentMemory, edit: Mapping[str, Any]) -> list[Memory]:
    if "memory" in edit:
        identifier = edit["memory"]
        if isinstance(identifier, str):
            identifier = whole_id(id_prefix(agent.engine.settings.seed, agent.agent_id), identifier)
        return [agent.get(identifier)]
    text = str(edit["matching"])
    memories = [memory for memory in agent.all() if text in memory.content]
    if not memories:
        raise RunError(
            f"{agent.agent_id} has no memory with the text {text!r:.60}",
            hint="`matching` takes a part of a memory's text, letter by letter",
        )
    return memories
