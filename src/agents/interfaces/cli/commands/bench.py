"""The command that measures a tick on this machine."""

from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ....storage.files import TemporaryFolder
from ..options import AsJson
from ..output import table
from ..signals import telling

if TYPE_CHECKING:
    from ....bank.memory_bank import MemoryBank

_WAYS = ("vector", "hybrid")


def bench(
    agents: Annotated[int, Option(min=1, max=10_000, help="Number of agents.")] = 100,
    memories: Annotated[
        int, Option(min=1, max=10_000, help="Number of memories of each agent.")
    ] = 100,
    ticks: Annotated[int, Option(min=1, max=1000, help="Number of ticks.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Measure a tick: each agent searches once and stores two memories, in one commit on disk.

    The command measures the search by vectors alone, and the hybrid search, which is the default.
    The numbers are medians; another machine, or another minute, gives other numbers.
    """
    from ....bank.memory_bank import MemoryBank

    names = [f"agent_{number:04}" for number in range(agents)]
    rows: list[dict[str, Any]] = []
    with (
        telling(lambda: "nothing was kept of it"),
        TemporaryFolder("bench") as folder,
    ):
        for way in _WAYS:
            options: dict[str, Any] = {"preset": way, "storage": {"sync": "manual"}}
            with MemoryBank.open(Path(folder) / way, **options) as bank:
                bank.add_many([(name, _text(name, n)) for name in names for n in range(memories)])
                taken = [_tick(bank, names, tick) for tick in range(1, ticks + 1)]
            search, store = (median(each) for each in zip(*taken, strict=True))
            rows.append(
                {
                    "searching by": way,
                    "ms a tick": round((search + store) * 1e3, 2),
                    "µs an agent": round((search + store) / agents * 1e6, 1),
                    "of it searching": round(search / agents * 1e6, 1),
                    "storing and commit": round(store / agents * 1e6, 1),
                }
            )
    table(f"{agents} agents with {memories} memories, {ticks} ticks", rows, as_json)


def _tick(bank: "MemoryBank", names: list[str], tick: int) -> tuple[float, float]:
    """The seconds for searching, and the seconds for storing and the commit."""
    asked = [(name, f"what did agent_{(tick * 7) % 100} offer at the market?") for name in names]
    new = [(name, _text(name, -tick)) for name in names for _ in range(2)]
    start = perf_counter()
    with bank.transaction():
        bank.advance(tick)
        bank.search_many(asked)
        searched = perf_counter()
        bank.add_many(new)
    return searched - start, perf_counter() - searched


def _text(name: str, number: int) -> str:
    return f"{name} was offered {number % 17} sacks of salt by agent_{number % 100} on day {number}"
