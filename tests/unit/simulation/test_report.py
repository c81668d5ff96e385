"""The report of a run and of a sweep: one HTML file, and the charts in it."""

import base64
import math
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import charts_drawn
from agents import MemoryBank
from agents.simulation.reports import plots
from agents.simulation.reports.report import (
    RemarkableMemory,
    RunResults,
    render_run,
)
from agents.simulation.reports.sweep_report import SweepResults, render_sweep
from agents.simulation.runs.outputs import metric_rows, most_retrieved
from agents.simulation.statistics import Interval, differences, summarise

HOSTILE = "<script>alert(1)</script>\u202e\x1b[2J\n\"'&\u2028 $x_{ 世界 \ud800"
CHARTS: dict[str, Callable[[], bytes]] = {
    "curves": lambda: plots.curves({"loss": [1, 2.5, None]}, [0, 1, 2]).png,
    "stacked": lambda: plots.stacked({"pinned": [1, 2], "low": [3, 9]}, [0, 1]).png,
    "bars": lambda: plots.bars({"alice": 3.0, "bob": -1.0}, x_label="loss"),
    "intervals": lambda: plots.intervals({"a": [Interval(3, 2, 1, 3), None]}, ["5", "9"]).png,
    "side_by_side": lambda: plots.side_by_side(
        {"loss": [1, 2]}, {"loss": [1, 3, 4]}, left_x=[0, 1], right_x=[0, 1, 2], diverged=1
    ),
}


def record(tick: int, **metrics: float | None) -> dict[str, Any]:
    tiers = {"pinned": 1, "critical": 2, "important": 3, "normal": 40 + tick, "low": 5}
    changes = {"added": 4, "moved": 1, "retrieved": 6, "retrieved_most": 3}
    changes |= dict.fromkeys(("demoted", "deleted", "errors"), 0)
    return {"tick": tick, "state_hash": f"hash{tick}", **tiers, **changes, "metrics": metrics}


def run(**changes: Any) -> RunResults:
    values: dict[str, Any] = {
        "name": "trust",
        "scenario": {"seed": 42, "memory": {"max_pinned": 5}},
        "summary": {"world": "market", "agents": 2, "seed": 42, "ticks": 2},
        "records": [record(tick, loss=float(tick)) for tick in range(3)],
        "most_retrieved": [RemarkableMemory("alice", "bob cheats", "pinned", 1, 17)],
        "pinned_longest": [RemarkableMemory("bob", "carol pays", "pinned", 0, 3)],
        "by_agent": {"losses": {"alice": 3.0, "bob": 0.5}},
    }
    return RunResults(**{**values, **changes})


def sweep(**changes: Any) -> SweepResults:
    base = {"flat": 10.0, "tiers": 4.0}
    rows = [
        {"variant": name, "limit": limit, "seed": seed, "loss": usual + limit + seed / usual}
        for limit in (3, 9)
        for name, usual in base.items()
        for seed in range(4)
    ]
    values: dict[str, Any] = {
        "name": "do-tiers-help",
        "question": "Do tiers help?",
        "variants": list(base),
        "grid": ["limit"],
        "seeds": range(4),
        "rows": rows,
        "statistics": summarise(rows, ["variant", "limit"], ["loss"]),
        "metrics": ["loss"],
        "baseline": {"variant": "flat"},
    }
    given = {**values, **changes}
    keys = [key for key in ("variant", *given["grid"]) if key not in given["baseline"]]
    compared = differences(given["rows"], keys, given["metrics"], baseline=given["baseline"])
    return SweepResults(**{"compared": compared, **given})


class Page(HTMLParser):
    """What a browser would find in a page."""

    VOID = frozenset({"meta", "img", "br", "link", "input"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.balanced = True
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.balanced &= bool(self.open) and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def printed_by(code: str, **environment: str) -> tuple[str, str]:
    command, env = [sys.executable, "-c", code], {**os.environ, **environment}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


@pytest.fixture(scope="module")
def run_page() -> str:
    with charts_drawn.again():
        return render_run(run())


@pytest.fixture(scope="module")
def sweep_page() -> str:
    with charts_drawn.again():
        return render_sweep(sweep())


@pytest.fixture(params=["run", "sweep"])
def page(request: pytest.FixtureRequest, run_page: str, sweep_page: str) -> str:
    return run_page if request.param == "run" else sweep_page


# Any page


def test_the_page_names_nothing_outside_itself(page: str) -> None:
    words = re.sub(r"base64,[A-Za-z0-9+/=]+", "", page)

    assert not re.search(r"https?:|//|url\(|@import|<link|<iframe", words, re.IGNORECASE)
    assert all(
        str(value).startswith("data:image/png;base64,")
        for _, attributes in Page(page).tags
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "action")
    )


def test_the_page_has_no_scripts_and_its_policy_forbids_them(page: str) -> None:
    found = Page(page)
    policy = next(m["content"] for m in found.all("meta") if "http-equiv" in m)

    assert not found.all("script")
    assert str(policy).startswith("default-src 'none'; img-src data:; style-src 'sha256-")


def test_no_element_needs_more_than_the_policy_allows(page: str) -> None:
    names = {name for _, attributes in Page(page).tags for name in attributes}

    assert not [name for name in names if name == "style" or name.startswith("on")]


def test_every_element_is_closed(page: str) -> None:
    found = Page(page)

    assert found.balanced
    assert found.open == []


def test_charts_and_tables_can_be_read_aloud(page: str) -> None:
    found = Page(page)

    assert found.all("html") == [{"lang": "en"}]
    assert all(image["alt"] for image in found.all("img"))
    assert all(head["scope"] == "col" for head in found.all("th"))


def test_every_image_is_a_whole_png(page: str) -> None:
    images = [str(image["src"]).partition(",")[2] for image in Page(page).all("img")]

    assert images
    assert all(size(base64.b64decode(image, validate=True)) > (0, 0) for image in images)


@pytest.mark.usefixtures("charts")
def test_the_same_results_give_the_same_bytes(run_page: str, sweep_page: str) -> None:
    assert render_run(run()) == run_page
    assert render_sweep(sweep()) == sweep_page


# A run


def test_a_run_says_where_who_how_long_and_with_which_seed(run_page: str) -> None:
    text = Page(run_page).text

    assert "2 agents lived through 2 ticks in market" in text
    assert "Seed42" in text


def test_a_run_ends_with_the_last_ticks_metrics_and_hash(run_page: str) -> None:
    assert "<dt>loss</dt><dd>2<small>from 0</small></dd>" in run_page
    assert "<code>hash2</code>" in run_page


def test_memories_are_shown_with_agent_tier_and_number(run_page: str) -> None:
    text = Page(run_page).text

    assert "bob cheatsalice · pinned · from tick 117" in text
    assert "carol paysbob · pinned · from tick 03" in text


def test_reasons_of_refusals_and_missing_answers_stand_with_their_numbers() -> None:
    why = {"refusals": {"fly was refused: no <wings>": 1200}, "no_answers": {"Timeout": 2}}
    text = Page(render_run(run(summary={"world": "market", **why}))).text
    told = text.index("What was refused, and why")
    assert told < text.index("fly was refused: no <wings>") < text.index("1,200")
    assert text.index("Why decisions had no answer") < text.index("Timeout")


def test_a_text_that_many_agents_have_is_one_row(make_bank: Callable[..., MemoryBank]) -> None:
    bank = make_bank()
    for agent in ("alice", "bob", "carol"):
        bank.agent(agent).add("the well is dry")
    bank.agent("bob").add("the mill turns")
    given = np.array([1, 2, 1, 1, 1, 2, 1], "<u4").tobytes()  # three numbers, then the memories
    dry, mill = most_retrieved(bank, ["alice", "bob", "carol"], [({}, given), ({}, given)])
    assert (dry.content, dry.number, dry.alike, dry.others) == ("the well is dry", 6, 2, 2)
    assert (mill.content, mill.number, mill.alike, mill.others) == ("the mill turns", 2, 0, 0)
    text = Page(render_run(run(most_retrieved=[dry, mill]))).text
    assert "and 2 memories with the same text of 2 other agents" in text


def test_settings_stand_as_in_a_file(run_page: str) -> None:
    assert "seed: 42\nmemory:\n  max_pinned: 5\n" in run_page


def test_text_from_the_run_does_nothing_in_the_page() -> None:
    memory = RemarkableMemory(HOSTILE, HOSTILE, HOSTILE, 0, 1)
    hostile = run(
        name=HOSTILE,
        scenario={HOSTILE: [HOSTILE]},
        summary={HOSTILE: HOSTILE, "world": HOSTILE, "state_hash": HOSTILE},
        records=[record(0, **{HOSTILE: 1.0})],
        most_retrieved=[memory],
        by_agent={HOSTILE: {HOSTILE: 1.0}},
    )

    page = render_run(hostile)

    assert not Page(page).all("script")
    assert Page(page).balanced
    assert not re.search("[\x00-\x09\x0b-\x1f\u2028\u202e\ud800]", page)
    assert "\\u202e\\u001b[2J\\n" in page


def test_a_long_memory_is_cut_and_says_so() -> None:
    long = RemarkableMemory("a", "x" * 5_000, "low", 0, 1)
    page = render_run(run(records=[], by_agent={}, most_retrieved=[long]))

    assert "x" * 600 + "…" in page
    assert "4,400 more characters" in page


def test_a_run_of_one_tick_has_a_report() -> None:
    assert "1 agent lived through 0 ticks" in render_run(
        run(records=[record(0)], summary={"agents": 1}, by_agent={})
    )


def test_a_run_without_ticks_has_a_report() -> None:
    page = render_run(run(records=[], most_retrieved=[], pinned_longest=[], by_agent={}))

    assert "No tick has been recorded yet." in page
    assert "No memory is pinned at the end." in page


def test_metrics_that_come_and_go_have_gaps() -> None:
    records = [record(0, loss=None), record(1, loss=math.nan), record(2, loss=3.0), record(3)]

    assert "Last 3, lowest 3, highest 3." in render_run(run(records=records, by_agent={}))


# A sweep


def test_a_sweep_answers_in_words(sweep_page: str) -> None:
    text = Page(sweep_page).text

    assert "Do tiers help?" in text
    assert "losstierslower by 5.78 at all 2 grid points" in text


def test_variants_that_do_not_differ_are_said_not_to() -> None:
    rows = [
        {"variant": variant, "seed": seed, "loss": seed * factor % 5 + factor / 10}
        for variant, factor in (("a", 1), ("b", 7))
        for seed in range(10)
    ]
    page = render_sweep(
        sweep(
            variants=["a", "b"],
            baseline={"variant": "a"},
            grid=[],
            rows=rows,
            statistics=summarise(rows, ["variant"], ["loss"]),
        )
    )

    assert "not clearly different: " in page
    assert "more seeds would show it" in page


def test_means_and_differences_stand_with_their_intervals(sweep_page: str) -> None:
    text = Page(sweep_page).text

    # By scipy.stats.ttest_rel, and twice its p value: there are two comparisons.
    assert "3tiers7.38 [6.86, 7.89]−5.78 [−6.08, −5.47]<0.0014" in text


def test_seeds_that_are_missing_are_counted() -> None:
    few = sweep()
    rows = [row for row in few.rows if row["seed"] < 2]
    statistics = summarise(rows, ["variant", "limit"], ["loss"])
    text = Page(render_sweep(sweep(rows=rows, statistics=statistics, seeds=range(2)))).text

    assert "not clearly different at all 2 grid points: 1 more seed at least" in text
    assert "no interval" in text


def test_points_of_a_grid_are_compared_with_one_of_them() -> None:
    rows = [{**row, "variant": "scenario"} for row in sweep().rows if row["variant"] == "flat"]
    rows = [
        {**row, "loss": row["loss"] + (row["seed"] if row["limit"] == 3 else 0)} for row in rows
    ]
    statistics = summarise(rows, ["variant", "limit"], ["loss"])
    grid_only = sweep(
        variants=["scenario"], rows=rows, statistics=statistics, baseline={"limit": 9}
    )

    text = Page(render_sweep(grid_only)).text

    assert "Compared with limit=9" in text
    assert "losslimit=3lower by 4.5" in text


def test_a_run_with_a_report_is_linked_from_its_point_and_from_the_table() -> None:
    rows = [{**row, "cell": f"a b_{place}"} for place, row in enumerate(sweep().rows)]
    page = Page(render_sweep(sweep(rows=rows, reports={"a b_3": "cells/a b_3/report.html"})))

    assert [link["href"] for link in page.all("a")] == ["cells/a%20b_3/report.html"] * 2


def test_a_sweep_leads_into_the_inspectors_of_its_runs_or_says_the_command() -> None:
    rows = [{**row, "cell": f"a b_{place}"} for place, row in enumerate(sweep().rows)]
    exported = {"a b_3": "cells/a b_3/inspector.html"}
    page = Page(render_sweep(sweep(rows=rows, inspectors=exported, name="my sweep", has_runs=True)))

    assert [link["href"] for link in page.all("a")] == ["cells/a%20b_3/inspector.html"] * 2
    assert "tiermem inspect 'my sweep'" in page.text
    assert "a b_4" in page.text  # the name of a run without a link
    both = Page(render_sweep(sweep(rows=rows, inspectors=exported, reports={"a b_3": "r.html"})))
    assert [link["href"] for link in both.all("a")] == [
        "r.html", "r.html", "cells/a%20b_3/inspector.html",
    ]  # fmt: skip
    assert "tiermem inspect" not in both.text  # no run is kept


def test_a_report_leads_into_the_inspector_that_lies_beside_it() -> None:
    memory = RemarkableMemory("a/b", "bob cheats", "pinned", 1, 17, id="0000-01")
    plain = Page(render_run(run(most_retrieved=[memory], pinned_longest=[])))
    assert plain.all("a") == []
    page = Page(
        render_run(run(most_retrieved=[memory], pinned_longest=[], inspector="inspector.html"))
    )

    assert [link["href"] for link in page.all("a")] == [
        "inspector.html#/overview",
        "inspector.html#/agent/a%2Fb?t=1",
        "inspector.html#/memory/0000-01",
    ]


def test_the_memories_that_mattered_say_what_that_means(run_page: str) -> None:
    assert run_page.count("A memory matters that") == 1


def test_a_chart_tells_the_values_under_the_pointer(run_page: str) -> None:
    titles = re.findall(r"<rect [^>]*><title>([^<]*)</title></rect>", run_page)

    assert "tick 1: 1" in titles
    assert "tick 2:\nlow 5\nnormal 42\nimportant 3\ncritical 2\npinned 1" in titles


@pytest.mark.usefixtures("charts")
def test_the_places_of_a_chart_lie_side_by_side_over_its_axis() -> None:
    chart = plots.curves({"a": [1.0] * 1000}, range(1000))

    assert 100 <= len(chart.places) <= 120
    ends = [(place.left, round(place.left + place.width, 4)) for place in chart.places]
    assert [end for _, end in ends[:-1]] == [start for start, _ in ends[1:]]
    assert 0 < ends[0][0] < ends[-1][1] < 1
    assert 0 <= chart.top < chart.top + chart.height < 1


@pytest.mark.usefixtures("charts")
@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("count", [2, 5, 9])
def test_long_names_of_lines_leave_the_plot_its_room(count: int) -> None:
    names = [f"{place}. There is a concert at the tavern on day {place}" for place in range(count)]
    long = plots.curves({name: [0, 1, 2] for name in names}, [0, 1, 2])
    short = plots.curves({"a": [0, 1, 2], "b": [0, 1, 2]}, [0, 1, 2])
    assert sum(place.width for place in long.places) > 0.85
    assert sum(place.width for place in short.places) > 0.85
    assert long.height > 0.4


@pytest.mark.usefixtures("charts")
def test_means_without_an_interval_can_be_drawn() -> None:
    unknown = Interval(1, 2.0, -math.inf, math.inf)

    chart = plots.intervals({"a": [unknown, Interval(3, 2, 1, 3)]}, ["5", "9"])
    assert size(chart.png) == (960, 540)
    assert [place.text for place in chart.places] == ["5\na: 2", "9\na: 2 [1, 3]"]


def test_every_run_of_a_sweep_is_in_its_table(sweep_page: str) -> None:
    assert "All 16 runs" in sweep_page


def test_text_from_a_sweep_does_nothing_in_the_page() -> None:
    rows = [{"variant": HOSTILE, "seed": 0, HOSTILE: 1.0, "at": HOSTILE, "cell": HOSTILE}]
    page = render_sweep(
        SweepResults(
            HOSTILE, HOSTILE, [HOSTILE], ["at"], [0], rows,
            summarise(rows, ["variant", "at"], [HOSTILE]), [HOSTILE],
            baseline={"at": HOSTILE}, reports={HOSTILE: HOSTILE},
            inspectors={HOSTILE: HOSTILE}, has_runs=True,
        )
    )  # fmt: skip

    assert not Page(page).all("script")
    assert not re.search("[\x00-\x09\x0b-\x1f\u2028\u202e\ud800]", page)


# Charts


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.usefixtures("charts")
def test_a_chart_is_the_same_bytes_and_does_not_tell_when_or_with_what_it_was_drawn(
    chart: str,
) -> None:
    drawn = CHARTS[chart]()
    assert CHARTS[chart]() == drawn
    assert not re.search(rb"tEXt|tIME|iTXt|[Mm]atplotlib", drawn)


@pytest.mark.usefixtures("charts")
def test_a_chart_neither_follows_nor_changes_the_users_settings() -> None:
    import matplotlib as mpl

    plain = CHARTS["curves"]()
    with mpl.rc_context({"lines.linewidth": 9, "axes.labelpad": 30}):
        assert CHARTS["curves"]() == plain
        assert mpl.rcParams["lines.linewidth"] == 9


@pytest.mark.parametrize(
    "values",
    [[], [None], [5.0], [0.0] * 3, [7.0] * 3, [math.nan, math.inf, 2.0], [1e300, -1e300], [-3, -2]],
    ids=str,
)
@pytest.mark.usefixtures("charts")
def test_any_values_can_be_drawn(values: list[float | None]) -> None:
    x = range(len(values))

    assert size(plots.curves({"a": values, "b": values}, x).png) == (960, 540)
    assert size(plots.stacked({"a": values}, x).png) == (960, 540)


@pytest.mark.usefixtures("charts")
def test_a_very_long_series_is_drawn_quickly() -> None:
    values = [float(tick * 7919 % 1013) for tick in range(200_000)]

    assert len(plots.curves({"noise": values}, range(len(values))).png) < 100_000


@pytest.mark.usefixtures("charts")
def test_peaks_stay_when_a_long_series_is_thinned() -> None:
    early, late = ([float(x == peak) for x in range(50_000)] for peak in (11_415, 31_415))
    x = range(50_000)

    assert plots.curves({"a": early}, x).png != plots.curves({"a": late}, x).png


@pytest.mark.parametrize("name", ["$x_{$", "世界", "\u202eab\n", "\ud800", ""], ids=ascii)
@pytest.mark.usefixtures("charts")
def test_any_name_can_be_drawn(name: str) -> None:
    assert size(plots.bars({name: 1.0}, name))[0] == 960


@pytest.mark.usefixtures("charts")
def test_of_many_agents_the_largest_twenty_are_drawn() -> None:
    many = {f"agent_{number:04}": float(number) for number in range(1_000)}
    largest = dict(sorted(many.items())[-20:])

    assert plots.bars(largest, x_label="the 20 largest of 1,000") == plots.bars(many)


@pytest.mark.usefixtures("charts")
def test_runs_without_a_common_metric_can_stand_side_by_side() -> None:
    png = plots.side_by_side({"a": [1]}, {"b": [2, 3]}, left_x=[0], right_x=[0, 1])

    assert size(png) == (1920, 560)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (-0.0, "0"), (1234567, "1,234,567"), (1234.5, "1,234"), (0.123456, "0.1235"),
        (-3.0, "−3"), (None, "–"), (math.nan, "–"), (math.inf, "∞"), (1e20, "1e+20"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_people_do(value: float | None, text: str) -> None:
    assert plots.number(value) == text


def test_importing_the_report_brings_in_neither_matplotlib_nor_numpy() -> None:
    code = (
        "import sys, agents.simulation.reports.report\n"
        "print({'matplotlib', 'numpy'} & {*sys.modules})"
    )

    assert printed_by(code) == ("set()\n", "")


@pytest.mark.slow
def test_drawing_uses_no_global_figures_and_prints_nothing_even_without_a_home() -> None:
    code = "import sys; from agents.simulation.reports import plots; plots.bars({'a': 1.0});"
    code += "print('matplotlib.pyplot' in sys.modules)"

    assert printed_by(code, MPLCONFIGDIR="/dev/null/nowhere") == ("False\n", "")


def test_a_metric_called_tick_is_no_column_of_the_table() -> None:
    records = [{"tick": number, "metrics": {"a": 1.0, "tick": 5.5}} for number in (1, 2)]
    assert metric_rows(records) == [{"tick": 1, "a": 1.0}, {"tick": 2, "a": 1.0}]
