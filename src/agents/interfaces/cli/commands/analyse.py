"""The command analyse: what a population knows, as tables and plots."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ....errors import ConfigError, InvalidInput
from ....memory.words import counted, short
from ....packages import install, need
from ..banks import id_in
from ..options import AsJson, Force
from ..output import echo_json, say, table

if TYPE_CHECKING:
    from ....analysis import Spread, Study

_MOST_ROWS = 10
_MOST_JSON = 1000
_MOST_LINES = 100


def analyse(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="The folder of a run or of a bank.")],
    tick: Annotated[
        int | None, Option("--tick", "-t", min=0, help="Look at nothing after this tick.")
    ] = None,
    memory: Annotated[
        str | None,
        Option(
            "--memory",
            metavar="ID",
            help="Tell how this memory spread instead: its id, or AGENT:ID with the last digits.",
        ),
    ] = None,
    sides: Annotated[
        list[str] | None,
        Option(
            "--sides",
            metavar="SUBJECT=A|B",
            help="Sentences between which agents are divided, such as "
            "mill='the mill burned|the mill is fine'; by default those of the world's facts.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="FOLDER", help="Write all tables, and plots, here."),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Tell what a population knows: what spread, who told whom, what lasted, what was needed.

    It reads the journal of a run or a bank, and changes nothing: the run can be in use. Tables on
    the screen have their first rows; --json has up to 1,000 of each, and --out all.
    """
    need("pyarrow", "scipy")
    from ....analysis import study

    if memory is not None and out is not None:
        raise ConfigError("--memory tells of one memory, and --out writes the tables of all")
    population = study(folder, tick, _sides(sides))
    if memory is not None:
        _tell_spread(population.spread(id_in(folder, memory)), as_json)
        return
    written = [] if out is None else _write(population, out, force=force)
    if as_json:
        tables = {
            name: {"rows": each.num_rows, "first": each.slice(0, _MOST_JSON).to_pylist()}
            for name, each in population.tables().items()
        }
        about = {"name": population.name, "tick": population.tick, "agents": len(population.agents)}
        echo_json(
            {**about, "memories": len(population.columns), "tables": tables, "files": written}
        )
        return
    _tell(population)
    for path in written:
        say(f"wrote {path}")


def _sides(given: list[str] | None) -> dict[str, list[str]] | None:
    """The sentences of --sides, by subject."""
    found = {}
    for text in given or ():
        subject, _, sentences = text.partition("=")
        if not subject.strip() or "|" not in sentences:
            raise InvalidInput(
                f"--sides {text!r:.80} names no sides",
                hint="write SUBJECT=A|B, as in mill='the mill burned|the mill is fine'",
            )
        found[subject.strip()] = [each.strip() for each in sentences.split("|")]
    return found or None


def _tell(population: "Study") -> None:
    from ....simulation.analysis.spread import by_text

    people = counted(len(population.agents), "agent")
    held = counted(len(population.columns), "memory", "memories")
    say(f"{population.name}: {people}, {held} up to tick {population.tick}")
    if not population.columns.is_whole:
        say("it was restored from a checkpoint: what was before is not known")
    names = {"origin": "id", "alike": "more chains"}
    _tell_rows("spread most", by_text(population.spreads()), names, last="text")
    _tell_rows("ideas that most believed", population.ideas(), {"idea": "id"}, last="text")
    _tell_rows("who informs whom", population.tells())
    if population.has_centrality:
        _tell_rows("who is central", population.centrality())
    else:
        say(f"who is central: networkx is not installed; {install('networkx')}")
    _tell_rows("beliefs in common", population.overlap())
    if lasting := _lasting(population):
        table("how long memories lasted", lasting)
    else:
        say("how long memories lasted: none was lost")
    if population.has_decisions:
        _tell_rows(
            "forgotten and then needed", population.needed(), {"memory_id": "id"}, last="text"
        )
    else:
        say("forgotten and then needed: it keeps no decisions, so nobody can tell")
    if population.facts:
        _tell_rows("truth and rumour: agents that believe each at the end", population.overtaking())
    if population.sides:
        _tell_rows("divided and agreed: from 90 % on one side", population.consensus())
    if population.society is not None:
        _tell_rows("alike are those who hear each other: homophily", population.homophily())
        if (top := population.spreads(least=2)).num_rows:
            reached = population.reach(top["origin"][0].as_py())
            title = f"how far it came from its first agent: {short(top['text'][0].as_py() or '')}"
            _tell_rows(title, reached.drop_columns(["origin"]))


def _tell_rows(
    title: str, rows: Any, names: dict[str, str] | None = None, last: str | None = None
) -> None:
    """The first rows of a table; ``last`` names a column of texts that comes last, shortened."""
    shown, first = [], rows[:_MOST_ROWS]
    for row in first if isinstance(first, list) else first.to_pylist():
        own = {(names or {}).get(name, name): _shown(value) for name, value in row.items()}
        if last is not None:
            own["memory"] = short(own.pop(last) or "(forgotten)")
        shown.append(own)
    more = len(rows) > len(shown)
    table(f"{title}: the first {len(shown)} of {len(rows):,}" if more else title, shown)


def _shown(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def _lasting(found: "Study") -> list[dict[str, Any]]:
    """For each group of memories, how many are gone, and the age that half of them reached."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in found.survival().to_pylist():
        groups.setdefault((row["by"], row["group"]), []).append(row)
    return [
        {
            "by": by,
            "group": group,
            "gone": sum(row["gone"] for row in rows),
            "half are gone at age": next(
                (row["age"] for row in rows if row["survived"] <= 0.5), None
            ),
            "lasting": round(rows[-1]["survived"], 4),
        }
        for (by, group), rows in groups.items()
    ]


def _tell_spread(spread: "Spread", as_json: bool) -> None:
    if as_json:
        echo_json({**spread._asdict(), "table": spread.table.to_pylist()})
        return
    say(f"{spread.origin}: {spread.text or '(forgotten)'}")
    if spread.by == "text":
        say("nobody told it; these are the agents that have a memory of the same text")
    say(
        f"{counted(spread.holders, 'agent')} had it, it was told {counted(spread.tells, 'time')}, "
        f"R {spread.r:.2f}, through {counted(spread.depth, 'hand')} at most, "
        f"half of them had it after {counted(spread.half_life, 'tick')}"
    )
    lines = spread.lines()
    for line in lines[:_MOST_LINES]:
        say(f"  {line}")
    if len(lines) > _MOST_LINES:
        say(f"  … {len(lines) - _MOST_LINES:,} more; --json has all")


def _write(found: "Study", folder: Path, *, force: bool) -> list[str]:
    """Write the tables and the plots, and name the files."""
    from ....simulation.analysis.study import figures
    from ....simulation.reports import plots
    from ....simulation.runs.outputs import parquet
    from ....storage.files import make_folder, replace_file

    tables = {"memories": found.memories(), **found.tables()}
    files: dict[str, str | bytes] = {
        f"{name}.parquet": parquet(each) for name, each in tables.items()
    }
    files |= {
        f"{_safe(name)}.svg": plots.alone(chart) for name, (_, chart, _) in figures(found).items()
    }
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder", hint="name another with --out")
    taken = [name for name in files if (folder / name).exists()]
    if taken and not force:
        raise InvalidInput(
            f"{folder / taken[0]} exists already", hint="replace it with --force, or name another"
        )
    make_folder(folder)
    for name, data in files.items():
        replace_file(folder / name, data)
    return [str(folder / name) for name in files]


def _safe(name: str) -> str:
    """A subject of a world's facts as a part of a file's name."""
    return "".join(each if each.isalnum() or each in "-_" else "-" for each in name)[:60]
