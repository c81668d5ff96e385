"""The whole memories of a bank whose journal is damaged."""

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ..bank import history
from ..bank.memory_bank import MemoryBank
from ..config.load import load_settings
from ..engine.engine import Engine
from ..errors import InvalidInput
from ..memory.context import approximate_tokens
from ..storage.embedding import NoEmbedder
from ..storage.salvage import Salvage
from ..storage.salvage import salvage as read_whole
from .row_files import exported, exported_boards


class Salvaged(NamedTuple):
    """What is whole of a bank, and what is not. Close ``bank`` after use."""

    bank: MemoryBank
    """A copy in memory of all that is whole."""
    problems: tuple[str, ...]
    """What could not be read, or is not what was written."""
    touched: tuple[str, ...]
    """The agents whose memories are damaged, as far as is known."""
    lost: dict[str, int]
    """By agent, how many memories are lost; memories that were purged may be among them."""
    is_complete: bool
    """Whether the copy has every memory that the bank had."""
    has_ids: bool
    """Whether the ids of the memories are known: they depend on the bank's seed."""

    def rows(
        self, agents: Iterable[str] | None = None, *, archived: bool = False
    ) -> Iterator[dict[str, Any]]:
        """The memories as rows of an export, of all agents or of some."""
        names = self.bank.agents() if agents is None else agents
        for row in exported(self.bank, names, archived=archived):
            yield row if self.has_ids else {**row, "id": None}
        for row in exported_boards(self.bank) if agents is None else ():
            yield row if self.has_ids else {**row, "id": None}


def salvage(folder: str | PathLike[str]) -> Salvaged:
    """Read what is whole of the bank in ``folder``, damaged or not. Nothing in it changes.

    The texts and everything else about a memory are as they were written, or the memory is left
    out. :class:`BankDamaged` if nothing can be read, :class:`BankNotFound` without a bank.
    """
    if not isinstance(folder, str | PathLike):
        raise InvalidInput(f"a bank's folder is a path; got {folder!r:.60}", hint="name a folder")
    path = history.journal_of(Path(folder))
    result, has_lost_rows = _opened(read_whole(path))
    if has_lost_rows:
        result.bank.close()
        result, _ = _opened(read_whole(path, has_lost_rows=True))
    return result


def _opened(saved: Salvage) -> tuple[Salvaged, bool]:
    """The result, and whether the shelf lacks rows that the rest of the journal speaks of."""
    journal = saved.journal
    try:
        kept = saved.identity or {
            "id": "",
            "seed": 0,
            "settings": load_settings().to_dict(redact=True),
            "embedder": {"name": "unknown", "dims": saved.dims},
        }
        journal.set(bank=kept)
        embedder = stand_in(kept["embedder"])
        settings = load_settings(base=kept["settings"])
        bank = MemoryBank(Engine(None, journal, kept, settings, embedder, approximate_tokens, None))
    except BaseException:
        journal.close()
        raise
    incomplete, lost = _missing(saved, bank)
    result = Salvaged(
        bank,
        tuple(saved.problems),
        tuple(sorted({*saved.touched, *incomplete, *({} if saved.is_complete else lost)})),
        {} if saved.is_complete else lost,
        saved.is_complete,
        saved.identity is not None,
    )
    return result, saved.is_complete and not saved.is_of_commits and bool(incomplete)


def _missing(saved: Salvage, bank: MemoryBank) -> tuple[list[str], dict[str, int]]:
    """The agents whose shelf lacks rows, and how many memories of each agent are missing."""
    incomplete, lost, state = [], {}, bank.engine.state
    for agent, block in sorted(state.blocks.items()):
        on_shelf = saved.on_shelf.get(agent, 0)
        if (block.shelf_sum - on_shelf) % (1 << 256):
            incomplete.append(agent)
            if not saved.is_of_commits:
                block.shelf_sum = on_shelf  # what is left is read without an error
        numbers = range(1, block.next_sequence)
        there = {memory.sequence for memory in state.memories(agent, numbers)}
        if missing := len(set(numbers) - there - saved.purged.get(agent, set())):
            lost[agent] = missing
    return incomplete, lost


def stand_in(kept: dict[str, Any]) -> Any:
    """An embedder with the name and the dimensions of a bank's own, which embeds nothing."""

    class StandIn(NoEmbedder):
        name, dims = kept["name"], kept["dims"]

    return StandIn()
