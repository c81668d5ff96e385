"""A component of SolaraViz that shows an agent's memory."""

from collections.abc import Callable
from typing import Any

from ..errors import BankClosed
from ..memory.context import one_line
from ..memory.tiers import TIER_NAMES
from ..simulation.runs.model_memory import ModelMemory


def make_memory_component(most: int = 50) -> Callable[[Any], Any]:
    """A component for ``SolaraViz(model, components=[…])``: choose an agent, and see its memory.

    It shows what the agent was given in the last step, and its ``most`` newest memories.
    """
    try:
        import solara
        from mesa.visualization.utils import update_counter
    except ImportError as error:
        raise ImportError("it needs SolaraViz: pip install 'mesa[viz]'") from error

    @solara.component  # type: ignore[untyped-decorator]
    def MemoryPage(model: Any) -> None:  # noqa: N802 - components are named like classes
        update_counter.get()  # each step of the model draws the page again
        memories = {each.agent_id: each for each in map(_memory_of, model.agents) if each}
        names = list(memories)
        chosen, choose = solara.use_state("")
        name = chosen if chosen in memories else next(iter(names), "")
        with solara.Card("Memory"):
            if not name:
                solara.Text("No agent has a memory.")
                return
            solara.Select("agent", values=names, value=name, on_value=choose)
            solara.Text("Given in the last step")
            _table(solara, _given_rows(memories[name]))
            solara.Text(f"Its newest memories, at most {most}")
            _table(solara, _rows(memories[name], most))

    return MemoryPage  # type: ignore[no-any-return]


def _memory_of(agent: Any) -> ModelMemory | None:
    memory = getattr(agent, "memory", None)
    return memory if isinstance(memory, ModelMemory) else None


def _given_rows(memory: ModelMemory) -> list[tuple[str, str, str]]:
    return [
        (TIER_NAMES[hit.memory.tier], f"{hit.score:.2f}", one_line(hit.memory.content))
        for hit in memory.recalled
    ]


def _rows(memory: ModelMemory, most: int) -> list[tuple[str, str, str]]:
    try:
        kept = memory.kept.all()
    except BankClosed:
        return []
    newest = kept[: -most - 1 : -1]
    return [
        (TIER_NAMES[each.tier], f"step {each.created_tick}", one_line(each.content))
        for each in newest
    ]


def _table(solara: Any, rows: list[tuple[str, str, str]]) -> None:
    """The rows as text: nothing in a memory is read as markup."""
    if not rows:
        solara.Text("nothing")
    for tier, what, text in rows:
        with solara.Row():
            solara.Text(f"[{tier}]")
            solara.Text(what)
            solara.Text(text)
