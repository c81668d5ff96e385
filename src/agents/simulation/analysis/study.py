"""A study of a run or a bank: every table about its population, each made when it is asked for.

After the tables, the plots of a study and its section in a run's report.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias, final, get_args

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput, MemoryNotFound, RunError
from ...memory.records import Scalar
from ...memory.tiers import TIER_NAMES, Tier
from ...memory.words import counted, cut, number
from ...storage.embedding import OfflineEmbedder, keys_of, quantise
from ...storage.interrupts import first, once
from ...storage.journal.journal import Journal
from ..kept_ticks import KeptTicks
from ..protocols import NO_ARGUMENTS
from ..reports import html as page
from ..reports import networks as pictures
from ..reports import plots
from ..society import Society
from ..statistics import Band
from . import beliefs, forgetting, ideas, networks, spread
from .columns import Columns
from .ideas import SAME, By, Opinions
from .spread import by_text

if TYPE_CHECKING:
    import pyarrow as pa

NEAR = 0.3
"""From this cosine on, a memory that is gone counts as near to a query: ``benchmarks/nearness.py``
measured how near questions are to their answers, and to the answers of others."""

Opened = Callable[[], AbstractContextManager[Journal]]
Attributes: TypeAlias = Mapping[str, Mapping[str, Scalar]]
"""Values of agents, by name and agent."""
Sides: TypeAlias = Mapping[str, Iterable[str]]
"""By subject the sentences between which agents are divided; facts are such, too."""
_MOST_COMPARED = 5
"""Ideas of which it is told whether those who hear each other hold them."""


@final
class Study:
    """The population of a run or a bank, up to a tick. Tables are of pyarrow.

    Made by :func:`tiermem.analysis.study`. It has read the journal, and changes nothing.
    """

    def __init__(
        self,
        name: str,
        columns: Columns,
        facts: beliefs.Facts,
        logged: int,
        journal: Opened,
        society: Society | None = None,
        attributes: Attributes = NO_ARGUMENTS,
        sides: Sides | None = None,
    ) -> None:
        self.name = name
        self.columns = columns
        self.facts = facts
        """What the world says is true; empty if it says nothing."""
        self.society = society
        """Who can hear whom at this tick; None if neither scenario nor world says so."""
        self.attributes = attributes
        """By name, what the personas of a run have of each agent."""
        self.sides: Sides = facts if sides is None else sides
        """By subject the sentences between which agents are divided: those of the facts, unless
        others are given."""
        self._logged = logged
        """How many agents the decision log has."""
        self._journal = journal

    @property
    def tick(self) -> int:
        """The last tick that is looked at."""
        return self.columns.last_tick

    @property
    def agents(self) -> list[str]:
        """The agents, in the order of the run."""
        return list(self.columns.agents)

    def memories(self) -> "pa.Table":
        """Every memory that there was: who had it, when, from whom, and until when."""
        import pyarrow as pa

        columns, told = self.columns, self.columns.told
        tellers: list[str | None] = [None] * len(columns)
        for at in np.flatnonzero(told.is_new).tolist():
            tellers[told.row[at]] = told.teller[at]
        names = [TIER_NAMES[Tier(tier)] for tier in range(len(TIER_NAMES))]
        ids = pa.array(columns.ids(), pa.string())
        return pa.table(
            {
                "id": ids,
                "agent": pa.DictionaryArray.from_arrays(columns.agent, columns.agents),
                "tick": columns.born,
                "tier": pa.DictionaryArray.from_arrays(columns.tier, names),
                "kind": pa.array(columns.kind, pa.string()).dictionary_encode(),
                "text": pa.array(columns.text, pa.string()),
                "gone": pa.array(columns.gone, mask=columns.gone < 0),
                "cause": pa.array(columns.cause, pa.string()).dictionary_encode(),
                "teller": pa.array(tellers, pa.string()),
                "origin": ids.take(pa.array(columns.origin)),
                "hands": columns.hands,
            }
        )

    def spreads(self, least: int = 2) -> "pa.Table":
        """The memories that ``least`` agents or more had, the most spread first.

        ``r`` is how many agents a holder brought it to, ``depth`` the most hands, ``half_life`` the
        ticks until half of all holders had it.
        """
        return spread.spreads(self.columns, least)

    def spread(self, memory_id: str) -> spread.Spread:
        """The spread of one memory, from the first of its chain on; any copy's id will do."""
        row = self.columns.row_of(memory_id) if isinstance(memory_id, str) else None
        if row is None:
            raise MemoryNotFound(
                f"{self.name} has no memory {memory_id!r:.80} up to tick {self.tick}",
                hint="tiermem analyse, show and why give ids; the ids of another run are others",
            )
        return spread.spread_of(self.columns, row)

    @once
    def _tells(self) -> "pa.Table":
        return spread.tells(self.columns)

    def tells(self) -> "pa.Table":
        """Who informs whom: an edge for each teller and listener, the most used first."""
        return self._tells

    @property
    def has_centrality(self) -> bool:
        """Whether networkx is installed, which :meth:`centrality` needs."""
        return find_spec("networkx") is not None

    def centrality(self) -> "pa.Table":
        """How central each agent is in what was told; it needs networkx, ``tiermem[networks]``."""
        return spread.centrality(self._tells)

    def overlap(self, agents: Sequence[str] | None = None) -> "pa.Table":
        """How much each two agents believe the same, exactly and by nearness."""
        if agents is None:
            return beliefs.overlap(self.columns)
        known = {name: place for place, name in enumerate(self.columns.agents)}
        for name in agents:
            if name not in known:
                raise InvalidInput(f"{self.name} has no agent {name!r:.60}")
        return beliefs.overlap(self.columns, sorted({known[name] for name in agents}))

    def ideas(self, by: By = "meaning", same: float = SAME, least: int = 2) -> "pa.Table":
        """What ``least`` agents or more believed, told or not, those that most believed first.

        Texts are one idea if they are the same or, by ``meaning``, as near as ``same``.
        ``half_life`` is the ticks after which half of those who came to believe it do no more.
        """
        if by not in get_args(By):
            raise InvalidInput(f"by is {by!r:.40}", hint="use text or meaning")
        if not 0 < same <= 1:
            raise InvalidInput(f"same is {same!r:.40}", hint="use a cosine above 0, up to 1")
        return ideas.table(self.columns, by, same, least)

    def opinions(self) -> dict[str, dict[str, str]]:
        """For each subject the side of each agent at the end, for those who are on one."""
        names = self.columns.agents
        return {
            subject: {
                names[agent]: own.sides[side]
                for agent, side in enumerate(own.held[-1].tolist())
                if side >= 0
            }
            for subject, own in self._opinions.items()
        }

    def polarisation(self) -> "pa.Table":
        """For each subject and tick how many are on a side, and how divided these are.

        It is 0 if all are on one side, and 1 if equally many are on each; null if nobody is.
        """
        import pyarrow as pa

        kinds = {"subject": pa.string(), "tick": pa.int64(), "agents": pa.int64()}
        schema = pa.schema({**kinds, "polarisation": pa.float64()})
        found: dict[str, list[Any]] = {name: [] for name in schema.names}
        for subject, own in self._opinions.items():
            counts = own.counts()
            divided = ideas.polarisation(counts)
            found["subject"] += [subject] * len(counts)
            found["tick"] += range(len(counts))
            found["agents"] += counts.sum(axis=1).tolist()
            found["polarisation"] += [None if np.isnan(each) else each for each in divided.tolist()]
        return pa.table(found, schema)

    def consensus(self, share: float = 0.9) -> "pa.Table":
        """For each subject the side that most are on at the end, and since when they agree.

        ``tick`` is the first one from which on, until the end, this share of all agents was on that
        side; null if they do not agree.
        """
        import pyarrow as pa

        if not 0.5 < share <= 1:
            raise InvalidInput(f"share is {share!r:.40}", hint="use a share above 0.5, up to 1")
        found = []
        for subject, own in self._opinions.items():
            end = ideas.consensus(own, len(self.columns.agents), share)
            divided = float(ideas.polarisation(own.counts()[-1:])[0])
            last = None if np.isnan(divided) else divided
            found.append({"subject": subject, **end._asdict(), "polarisation": last})
        kinds = {"subject": pa.string(), "side": pa.string(), "share": pa.float64()}
        schema = pa.schema({**kinds, "tick": pa.int64(), "polarisation": pa.float64()})
        return pa.Table.from_pylist(found, schema)

    @once
    def _opinions(self) -> dict[str, Opinions]:
        return {
            subject: ideas.opinions(self.columns, tuple(own)) for subject, own in self.sides.items()
        }

    def sides_in(self, ticks: Iterable[int]) -> dict[str, dict[str, dict[str, str | None]]]:
        """For each subject and some ticks the side of each agent, by ``tick 7``; None for none."""
        return {
            subject: {
                f"tick {tick}": {
                    name: own.sides[side] if side >= 0 else None
                    for name, side in zip(self.columns.agents, own.held[tick].tolist(), strict=True)
                }
                for tick in ticks
            }
            for subject, own in self._opinions.items()
        }

    def tier_shares(self, ticks: Iterable[int]) -> dict[str, dict[str, float]]:
        """For some ticks, by ``tick 7``, the share of each agent's memories that matter.

        These began as pinned or critical. Who has no memories has no share.
        """
        columns, found = self.columns, {}
        for tick in ticks:
            there = columns.is_there(tick)
            count = len(columns.agents)
            held = np.bincount(columns.agent[there], minlength=count)
            matter = columns.agent[there & (columns.tier <= Tier.CRITICAL)]
            share = np.bincount(matter, minlength=count) / np.maximum(held, 1)
            found[f"tick {tick}"] = {
                columns.agents[agent]: round(float(share[agent]), 9)
                for agent in np.flatnonzero(held).tolist()
            }
        return found

    def homophily(self, values: Attributes | None = None) -> "pa.Table":
        """How alike those are who can hear each other, by name of what is compared: from -1 to 1.

        ``values`` are numbers or texts of agents, by name. The default are attributes of personas,
        opinions, and the first ideas: whether an agent holds them. It needs a society.
        """
        import pyarrow as pa

        society = self._society()
        given = self._compared() if values is None else values
        found = [
            {"of": name, "homophily": networks.homophily(society.edges, own), "agents": len(own)}
            for name, own in given.items()
        ]
        kinds = {"of": pa.string(), "homophily": pa.float64(), "agents": pa.int64()}
        return pa.Table.from_pylist(found, pa.schema(kinds))

    def _compared(self) -> dict[str, Mapping[str, Scalar]]:
        names, there = self.columns.agents, self.columns.is_there()
        held = {}
        idea = ideas.same_ideas(self.columns)
        for row in self.ideas("text").slice(0, _MOST_COMPARED).to_pylist():
            rows = np.flatnonzero((idea == self.columns.row_of(row["idea"])) & there)
            holders = set(self.columns.agent[rows].tolist())
            held[row["text"]] = {name: place in holders for place, name in enumerate(names)}
        opinions: dict[str, Mapping[str, Scalar]] = {**self.opinions()}
        return {**self.attributes, **opinions, **held}

    def reach(self, memory_id: str) -> "pa.Table":
        """How far along the ties of the society a memory came: a row for each distance.

        It needs a society: that of the study's tick.
        """
        society = self._society()
        return networks.reach(self.spread(memory_id), society)

    def picture(self, panels: Mapping[str, Mapping[str, Scalar]], of: str = "") -> str:
        """SVG: the society, once for each title, its agents coloured by these values.

        Texts have a colour each, numbers that of their fifth of the range. ``of`` says what the
        values are. The text is a file as it is.
        """
        return plots.alone(pictures.network(self._society(), panels, of))

    def _society(self) -> Society:
        if self.society is None:
            raise RunError(
                f"{self.name} has no society, so nobody can tell who hears whom",
                hint="name one as simulation.society, or give the world one; a bank that no run "
                "made has none",
            )
        return self.society

    def survival(self) -> "pa.Table":
        """How long memories last, by tier and by source: Kaplan and Meier."""
        return forgetting.survival(self.columns)

    @once
    def _truth(self) -> "pa.Table":
        return beliefs.truth(self.columns, self.facts)

    def truth(self) -> "pa.Table":
        """For each subject of the world's facts and each tick, who believes truth and lie."""
        return self._truth

    def overtaking(self) -> "pa.Table":
        """For each subject of the world's facts, when truth overtook the lie."""
        return beliefs.overtaking(self.truth())

    @once
    def has_decisions(self) -> bool:
        """Whether the journal keeps queries of decisions, up to this tick."""
        with self._journal() as journal:
            log = first(KeptTicks(journal).logs())
            return bool(self._logged) and log is not None and log[0] <= self.tick

    def needed(self, near: float = NEAR) -> "pa.Table":
        """Memories that were gone, and to which a later query was nearer than to all given ones."""
        if not self.has_decisions:
            raise RunError(
                f"{self.name} keeps no decisions, so nobody can tell what was needed",
                hint="a run of a scenario keeps them; a bank that no run made does not",
            )
        with self._journal() as journal:
            return forgetting.needed(
                self.columns, _decisions(journal), self._logged, _embed_of(journal), near
            )

    def tables(self) -> dict[str, "pa.Table"]:
        """All tables that there is something for, by name.

        Without decisions there is no ``needed``; without facts no ``truth`` and ``overtaking``;
        without sides no ``polarisation`` and ``consensus``; without a society no ``homophily``, nor
        ``reach``, which is that of the memory that spread most; without networkx no
        ``centrality``.
        """
        tables = {
            "spreads": self.spreads(),
            "ideas": self.ideas(),
            "tells": self.tells(),
            "overlap": self.overlap(),
            "survival": self.survival(),
        }
        if self.has_centrality:
            tables["centrality"] = self.centrality()
        if self.has_decisions:
            tables["needed"] = self.needed()
        if self.facts:
            tables |= {"truth": self.truth(), "overtaking": self.overtaking()}
        if self.sides:
            tables |= {"polarisation": self.polarisation(), "consensus": self.consensus()}
        if self.society is not None:
            tables["homophily"] = self.homophily()
            if (top := tables["spreads"]).num_rows:
                tables["reach"] = self.reach(top["origin"][0].as_py())
        return tables


def _decisions(journal: Journal) -> Iterator[tuple[int, bytes, bytes]]:
    """The tick, the log and what was retrieved, of each tick that has a log."""
    ticks = KeptTicks(journal)
    for tick, log in ticks.logs():
        if (kept := ticks.tick(tick)) is not None:
            yield tick, log, kept.retrieved


def _embed_of(journal: Journal) -> forgetting.Embed:
    """What gives queries their vectors: the offline embedder, or what the journal keeps."""
    kept: dict[str, Any] = journal.get("bank")["embedder"]
    offline = OfflineEmbedder()

    def embed(texts: Sequence[str]) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
        if not texts:
            return np.zeros((0, kept["dims"]), np.int8), np.zeros(0, np.bool_)
        if kept["name"] == offline.name:
            vectors = quantise(offline.embed(list(texts)), offline.dims, len(texts))
            return vectors, np.ones(len(texts), np.bool_)
        known = journal.embeddings([key for text in texts for key in keys_of(text)])
        vectors_kept = [next(filter(None, map(known.get, keys_of(text))), None) for text in texts]
        data = b"".join(vector or bytes(kept["dims"]) for vector in vectors_kept)
        vectors = np.frombuffer(data, np.int8).reshape(len(texts), -1)
        return vectors, np.array([vector is not None for vector in vectors_kept])

    return embed


# Plots of a study, and its section in a run's report

if TYPE_CHECKING:
    import pyarrow as pa

    from .study import Study

_MOST_CURVES = 5
_MOST_ROWS = 10
_MOST_TREE = 60
# The columns of the tables that the report shows, and their heads.
_TELLS = {"teller": "Teller", "listener": "Listener", "times": "Times", "new": "New"}
_CENTRALITY = {
    "agent": "Agent", "told": "Told", "heard": "Heard", "pagerank": "PageRank",
    "betweenness": "Betweenness",
}  # fmt: skip
_OVERLAP = {
    "agent": "Agent", "other": "Other", "shared": "Shared", "exact": "Exact", "near": "Near",
}  # fmt: skip
_IDEAS = {
    "text": "Idea", "texts": "Wordings", "holders": "Agents", "believers": "At the end",
    "half_life": "Half-life of belief",
}  # fmt: skip
_AGREED = {
    "subject": "Subject", "side": "Most believe", "share": "Of all agents",
    "tick": "Agreed from tick", "polarisation": "Polarisation",
}  # fmt: skip
_ALIKE = {"of": "In", "homophily": "Homophily", "agents": "Agents"}
_NEEDED = {
    "text": "Memory", "agent": "Agent", "query": "Query", "gone": "Gone", "times": "Times",
    "score": "Score",
}  # fmt: skip


def figures(study: "Study") -> dict[str, tuple[str, str, str]]:
    """By name, each plot that there is something to draw for: title, chart, caption."""
    drawn = {}
    top = by_text(study.spreads())[:_MOST_CURVES]
    if top:
        curves = {
            f"{at}. {cut(row['text'] or '(forgotten)', 60)}": _holders(study, row)
            for at, row in enumerate(top, 1)
        }
        caption = f"The {len(top)} memories that most agents had."
        chart = plots.curves(curves, range(study.tick + 1))
        drawn["spread"] = ("Agents that had a memory at some time", chart, caption)
    for subject, rows in _by(study.truth(), "subject").items():
        if any(row["false"] for row in rows):
            curves = {side: [row[side] for row in rows] for side in ("true", "false")}
            chart = plots.curves(curves, [row["tick"] for row in rows])
            caption = "Agents that believe what is true, and what is false."
            drawn[f"truth-{subject}"] = (f"Truth and rumour: {subject}", chart, caption)
    if study.society is not None and len(study.agents) <= pictures.MOST:
        drawn |= _networks(study, top[0] if top else None)
    lasting = _survival(study.survival())
    if lasting:
        caption = (
            "The share of memories that lasted longer than an age, in ticks, by Kaplan and Meier, "
            "with intervals of 95 % at each age, for which an agent's memories are not independent."
        )
        drawn["survival"] = ("How long memories lasted", plots.bands(lasting), caption)
    return drawn


def _networks(study: "Study", top: Mapping[str, Any] | None) -> dict[str, tuple[str, str, str]]:
    """The society in several ticks: who has the memory that spread most, who is on which side."""
    society, ticks = study.society, _some(study.tick)
    drawn: dict[str, tuple[str, str, str]] = {}
    if society is None:
        return drawn
    when = "" if society is society.at(-1) else f" Ties are those of tick {number(study.tick)}."
    if top is not None:
        rows = study.spread(top["origin"]).table.to_pylist()
        since = {row["agent"]: row["tick"] for row in rows}
        panels = {
            f"tick {tick}": {
                name: "had it" if since.get(name, tick + 1) <= tick else None
                for name in study.agents
            }
            for tick in ticks
        }
        chart = pictures.network(society, panels, cut(top["text"] or "(forgotten)", 80))
        caption = f"Who had the memory that spread most, along the ties of the society.{when}"
        drawn["network-spread"] = ("How it came through the society", chart, caption)
    tiers = study.tier_shares(ticks)
    if len({share for panel in tiers.values() for share in panel.values()}) > 1:
        chart = pictures.network(society, tiers, "the share that is pinned or critical")
        caption = f"How much of each agent's memories began as pinned or critical.{when}"
        drawn["network-tiers"] = ("Tiers in the society", chart, caption)
    for subject, by_tick in study.sides_in(ticks).items():
        chart = pictures.network(society, by_tick)
        caption = f"On which side each agent is.{when}"
        drawn[f"network-{subject}"] = (f"Who is on which side: {subject}", chart, caption)
    return drawn


def _some(last: int) -> list[int]:
    """Up to six ticks from the first to the last one."""
    return sorted({round(1 + (last - 1) * part / 5) for part in range(6)}) if last > 1 else [last]


def section(study: "Study") -> str:
    """HTML: what was told, what became of it, what was needed, when truth overtook; or nothing."""
    if not len(study.columns.told.row) and not study.facts:
        return ""
    drawn = [page.figure(*figure) for figure in figures(study).values()]
    return "".join(
        [
            "<h2>What went round</h2>",
            _overtaking(study.overtaking().to_pylist()),
            page.charts(drawn) if drawn else "",
            _spreads(study),
            _table("Ideas, by meaning", study.ideas(), _IDEAS, numbers=4),
            _table("Divided or agreed", study.consensus(), _AGREED, numbers=3),
            _table("Alike are those who hear each other", study.homophily(), _ALIKE, numbers=2)
            if study.society is not None
            else "",
            _table("Who informs whom", study.tells(), _TELLS, numbers=2),
            _table("Who is central", study.centrality(), _CENTRALITY, numbers=4)
            if study.has_centrality
            else "",
            _table("Beliefs in common", study.overlap(), _OVERLAP, numbers=3),
            _table("Forgotten and then needed", study.needed(), _NEEDED, numbers=3)
            if study.has_decisions
            else "",
        ]
    )


def _overtaking(rows: Sequence[Mapping[str, Any]]) -> str:
    said = []
    for row in rows:
        now = f"{number(row['true'])} believe what is true, {number(row['false'])} what is false"
        when = "the lie was never ahead" if row["most_false"] else "no lie was believed"
        if row["overtook"] is not None:
            when = f"truth overtook the lie in tick {number(row['overtook'])}"
        elif row["false"] >= row["true"] and row["false"]:
            when = "truth did not overtake the lie"
        said.append([page.escape(row["subject"]), page.escape(when), page.escape(now)])
    if not said:
        return ""
    return "<h3>Truth and rumour</h3>" + page.table(
        ["Subject", "What happened", "At the end"], said, numbers=0
    )


def _spreads(study: "Study") -> str:
    rows = by_text(study.spreads())[:_MOST_ROWS]
    if not rows:
        return ""
    cells = [
        [page.clipped(row["text"] or "(forgotten)") + _begun_again(row["alike"])]
        + [number(row[name]) for name in ("holders", "tells", "r", "depth", "half_life")]
        for row in rows
    ]
    heads = ["Memory", "Agents", "Tells", "R", "Hands", "Half-life"]
    tree = page.details("The tree of the first one", _tree(study, rows[0]["origin"]))
    return "<h3>What spread most</h3>" + page.table(heads, cells, numbers=5) + tree


def _begun_again(times: int) -> str:
    if not times:
        return ""
    return f'<span class="about">and {counted(times, "chain")} with the same text</span>'


def _tree(study: "Study", origin: str) -> str:
    lines = study.spread(origin).lines()
    shown = "".join(f"{page.escape(line)}\n" for line in lines[:_MOST_TREE])
    more = len(lines) - _MOST_TREE
    return f"<pre>{shown}{f'… {number(more)} more' if more > 0 else ''}</pre>"


def _table(title: str, rows: "pa.Table", heads: Mapping[str, str], numbers: int) -> str:
    if not rows.num_rows:
        return ""
    cells = [
        [
            page.clipped(row[name]) if isinstance(row[name], str) else number(row[name])
            for name in heads
        ]
        for row in rows.slice(0, _MOST_ROWS).to_pylist()
    ]
    return f"<h3>{title}</h3>" + page.table(list(heads.values()), cells, numbers)


def _holders(study: "Study", row: Mapping[str, Any]) -> list[int]:
    """How many agents had a memory at some time, up to each tick."""
    new = [0] * (study.tick + 1)
    for tick in study.spread(row["origin"]).table["tick"].to_pylist():
        new[tick] += 1
    return list(accumulate(new))


def _survival(table: "pa.Table") -> dict[str, Band]:
    """The curve of each group with its intervals, at the ages at which any group lost memories.

    Where there is no interval, the band is the curve.
    """
    rows = [row for row in table.to_pylist() if row["by"] != "all"]
    ages = sorted({0, *(row["age"] for row in rows)}) if rows else []
    series = {}
    for group, own in _by_rows(rows, "group").items():
        by_age = {row["age"]: row for row in own}
        here: Mapping[str, Any] = {"survived": 1.0, "low": 1.0, "high": 1.0}
        steps = [here := by_age.get(age, here) for age in ages]
        share, low, high = (
            [row["survived"] if row[name] is None else row[name] for row in steps]
            for name in ("survived", "low", "high")
        )
        series[group] = Band(own[0]["at_risk"], ages, share, low, high)
    return series


def _by(table: "pa.Table", name: str) -> dict[str, list[dict[str, Any]]]:
    return _by_rows(table.to_pylist(), name)


def _by_rows(rows: Sequence[dict[str, Any]], name: str) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[name], []).append(row)
    return groups
