"""The command ``status``: how full a bank is, as tables with bars, or as lines with tabs."""

import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from typer import Option

from ....errors import InvalidInput
from ....memory.context import one_line
from ....memory.records import short_id
from ....memory.tiers import TIER_NAMES
from ....memory.words import short
from ..banks import copied
from ..options import AsJson, BankFolder, OneAgent, Session
from ..output import echo_json, say, table

if TYPE_CHECKING:
    from ....engine.status import Status


def status(
    folder: BankFolder,
    agent: OneAgent = None,
    session: Session = None,
    by_agent: Annotated[
        bool, Option("--tiers", help="Count the memories in each tier, agent by agent.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show how full a bank is, and suggest what to do about it.

    The command reads a copy: the bank can be in use, and nothing changes.
    """
    if session is not None and (agent is None or by_agent):
        raise InvalidInput(
            "a session is one agent's, and has no --tiers",
            hint="name the agent with --agent, and leave --tiers out",
        )
    if by_agent:
        _tiers(folder, agent, as_json)
        return
    with copied(folder, agent) as bank:
        shown = bank.status(agent)
        if agent is not None and session is not None:
            shown = bank.agent(agent).status(session=session)
        if as_json:
            echo_json(shown.to_dict())
            return
        page = Page(
            str(folder),
            shown,
            bank.settings.status.spill_above,
            lambda owner, memory_id: short(bank.agent(owner).get(memory_id).content),
        )
        if sys.stdout.isatty():
            page.draw(Console(highlight=False))
        else:
            for line in page.lines():
                say(line)


def _tiers(folder: Path, agent: str | None, as_json: bool) -> None:
    """Count the memories in each tier, agent by agent."""
    with copied(folder, agent) as bank:
        counts = {
            each: {name: bank.agent(each).count(tier) for tier, name in TIER_NAMES.items()}
            for each in (bank.agents() if agent is None else [agent])
        }
        limits = bank.settings.memory
        tick = bank.tick
    if as_json:
        most = {"pinned": limits.max_pinned, "critical": limits.max_critical}
        echo_json({"tick": tick, "caps": most, "agents": counts})
        return
    rows: list[dict[str, Any]] = [
        {"agent": each, **own, "all": sum(own.values())} for each, own in counts.items()
    ]
    if len(rows) > 1:
        sums = {key: sum(row[key] for row in rows) for key in rows[0] if key != "agent"}
        rows.append({"agent": "(together)", **sums})
    caps = f"at most {limits.max_pinned} pinned and {limits.max_critical} critical each"
    table(f"{folder} after tick {tick}: {caps}", rows)


_MOST_BAR = 24
_BESIDE_BAR = 58
"""Columns of a table beside the bar."""
_MOST_AGENTS = 5
_MOST_ALIKE, _MOST_IDS = 3, 3
"""Suggestions of a kind that are drawn, and memories of each suggestion."""
_COLOURS = {"hot": "red", "warm": "yellow", "cold": "blue"}


class Page:
    """One status, for a terminal or as lines."""

    def __init__(
        self, name: str, status: "Status", full_above: float, text_of: Callable[[str, str], str]
    ) -> None:
        """``text_of`` gives one short line for the agent's memory with an id."""
        self._name = name
        self._status = status
        self._full_above = full_above
        self._text_of = text_of
        self._bar = _MOST_BAR

    def draw(self, console: Console) -> None:
        """Print tables with bars."""
        self._bar = min(_MOST_BAR, max(4, console.width - _BESIDE_BAR))
        console.print(Text(self._title(), "bold"))
        console.print(Text(f"clock {self._status.clock}", "dim"))
        console.print(Text(f"embedder {self._status.embedder}", "dim"))
        if store := self._store():
            console.print(Text(f"store {store}", "dim"))
        console.print()
        for drawn in (self._temperatures(), self._hot(), self._tiers()):
            console.print(drawn)
            console.print()
        if note := self._note():
            console.print(Text(note, "bold red"))
            console.print()
        self._suggest(console)

    def lines(self) -> Iterator[str]:
        """The same as lines with tabs."""
        status = self._status
        yield self._title()
        yield f"clock\t{status.clock}"
        yield f"embedder\t{status.embedder}"
        if store := self._store():
            yield f"store\t{store}"
        yield "temperature\tmemories\ttokens"
        for name, amount in status.temperatures.items():
            yield f"{name}\t{amount.items}\t{amount.tokens}"
        yield f"hot of\ttokens of {status.hot_max_tokens}\tmemories{self._of_facts('')}\tused"
        for agent in status.fullest:
            yield f"{agent.agent_id}\t{agent.tokens}\t{agent.items}\t{agent.utilization:.0%}"
        yield "tier\tmemories\tmost of an agent\tcap"
        for name, tier in status.tiers.items():
            yield f"{name}\t{tier.items}\t{tier.most}\t{'none' if tier.cap is None else tier.cap}"
        if note := self._note():
            yield note
        yield f"suggestions\t{len(status.suggestions)}"
        for each in status.suggestions:
            yield f"{each.what}\t{each.agent_id}\t{each.reason}"
            for memory_id in each.ids:
                yield f"\t{memory_id}\t{self._text_of(each.agent_id, memory_id)}"

    def _suggest(self, console: Console) -> None:
        """Print the first suggestions of each kind, and their memories."""
        if not self._status.suggestions:
            console.print("[green]nothing to suggest[/]")
            return
        for what, alike in groupby(self._status.suggestions, key=lambda each: each.what):
            of_a_kind = list(alike)
            for each in of_a_kind[:_MOST_ALIKE]:
                console.print(Text.assemble((what, "bold yellow"), " ", (each.agent_id, "cyan")))
                console.print(Padding(Text(one_line(each.reason)), (0, 0, 0, 2)))
                for memory_id in each.ids[:_MOST_IDS]:
                    text = self._text_of(each.agent_id, memory_id)
                    line = Text.assemble("  ", (short_id(memory_id), "dim"), "  ", (text, "italic"))
                    console.print(line, no_wrap=True, overflow="ellipsis")
                if (more := len(each.ids) - _MOST_IDS) > 0:
                    console.print(f"  [dim]and {more} more[/]")
            if (more := len(of_a_kind) - _MOST_ALIKE) > 0:
                console.print(f"[dim]and {more:,} more like that; --json lists all[/]")

    def _title(self) -> str:
        status = self._status
        whose = status.agent_id
        if status.session is not None:
            whose = f"the session {one_line(status.session)} of {whose}"
        if whose is None:
            whose = f"{status.agents:,} {'agent' if status.agents == 1 else 'agents'}"
            if status.groups:
                whose += f", {status.groups:,} {'group' if status.groups == 1 else 'groups'}"
        kept = ", ".join(f"{number:,} {name}" for name, number in status.retention.items())
        return f"{one_line(self._name)}: {whose} after tick {status.tick:,}; {kept} memories"

    def _store(self) -> str:
        store = self._status.store
        if store is None:  # one agent's part
            return ""
        if not store.behind:
            return store.provider if store.provider == "none" else f"{store.provider}, in step"
        late = "commit" if store.behind == 1 else "commits"
        return f"{store.provider}, {store.behind:,} {late} behind the journal"

    def _note(self) -> str | None:
        status = self._status
        if status.auto_spill or not status.over_limits:
            return None
        if status.agent_id is not None:
            whose = "hot is over its limits"
        else:
            has = "agent has" if status.over_limits == 1 else "agents have"
            whose = f"{status.over_limits:,} {has} more hot than the limits allow"
        return f"{whose}, and temperature.auto_spill is off: nothing leaves hot by itself"

    def _temperatures(self) -> Table:
        from ....engine.status import share

        table = _table("temperature", "memories", "tokens")
        everything = sum(amount.items for amount in self._status.temperatures.values())
        for name, amount in self._status.temperatures.items():
            part = share(amount.items, everything)
            table.add_row(
                Text(name, _COLOURS[name]),
                f"{amount.items:,}",
                f"{amount.tokens:,}",
                self._drawn(part, _COLOURS[name]),
                f"{part:.0%}",
            )
        return table

    def _of_facts(self, form: str) -> str:
        most = self._status.hot_max_facts
        return "" if most is None else f" of {most:{form}}"

    def _hot(self) -> Table:
        status = self._status
        table = _table("hot of", "memories", "tokens")
        if status.agent_id is None and status.agents > 1:
            table.columns[0].header = "fullest hot"
        for agent in status.fullest[:_MOST_AGENTS]:
            used = agent.utilization
            table.add_row(
                Text(agent.agent_id),
                f"{agent.items:,}{self._of_facts(',')}",
                f"{agent.tokens:,} of {status.hot_max_tokens:,}",
                self._drawn(used, self._colour(used)),
                f"{used:.0%}",
            )
        if not status.fullest:
            table.add_row(
                Text("nothing is hot", "dim"),
                f"0{self._of_facts(',')}",
                f"0 of {status.hot_max_tokens:,}",
                self._drawn(0.0, "green"),
                "0%",
            )
        return table

    def _tiers(self) -> Table:
        from ....engine.status import share

        status = self._status
        several = status.agent_id is None and status.agents > 1
        table = _table("tier", "memories", "fullest agent" if several else "cap")
        for name, tier in status.tiers.items():
            most = f"{tier.most:,}" if several else ""
            if tier.cap is None:
                table.add_row(name, f"{tier.items:,}", most, "", Text("no cap", "dim"))
                continue
            used = share(tier.most, tier.cap)
            # A full tier is no problem: a new memory takes the place of the oldest.
            against = f"{tier.most:,} of {tier.cap:,}"
            table.add_row(
                name, f"{tier.items:,}", against, self._drawn(used, "cyan"), f"{used:.0%}"
            )
        return table

    def _drawn(self, part: float, colour: str) -> ProgressBar:
        return ProgressBar(
            total=1.0,
            completed=min(part, 1.0),
            width=self._bar,
            complete_style=colour,
            finished_style=colour,
        )

    def _colour(self, used: float) -> str:
        if used > 1:
            return "bold red"
        return "yellow" if used > self._full_above else "green"


def _table(*names: str) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 1), pad_edge=False)
    for name, width in zip(names, (16, 10, 15), strict=True):
        table.add_column(
            name,
            justify="left" if name == names[0] else "right",
            min_width=width,
            max_width=22,
            no_wrap=True,
            overflow="ellipsis",
        )
    table.add_column("", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    return table
