"""The report of a run and of a sweep: one HTML file, and the charts in it."""

import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from agents import MemoryBank
from agents.memory.words import number
from agents.simulation.reports import plots
from agents.simulation.reports.report import (
    RemarkableMemory,
    RunResults,
    render_run,
)
from agents.simulation.reports.sweep_report import SweepResults, render_sweep
from agents.simulation.runs.outputs import metric_rows, most_retrieved
from agents.simulation.statistics import Interval, band, differences, summarise

HOSTILE = "<script>alert(1)</script>\u202e\x1b[2J\n\"'&\u2028 $x_{ 世界 \ud800"
DRAWING = re.compile("<svg.*?</svg>", re.DOTALL)
CHARTS: dict[str, Callable[[], str]] = {
    "curves": lambda: plots.curves({"loss": [1, 2.5, None]}, [0, 1, 2]),
    "stacked": lambda: plots.stacked({"pinned": [1, 2], "low": [3, 9]}, [0, 1]),
    "bars": lambda: plots.bars({"alice": 3.0, "bob": -1.0}, x_label="loss"),
    "intervals": lambda: plots.intervals({"a": [Interval(3, 2, 1, 3), None]}, ["5", "9"]),
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


class Chart:
    """What is drawn in a chart."""

    def __init__(self, chart: str) -> None:
        root = ElementTree.fromstring(chart)
        assert root.tag == "svg"
        _, _, self.width, self.height = map(float, root.attrib["viewBox"].split())
        places = root.findall(".//g[@class='places']/path")
        self.told = [str(place.findtext("title")) for place in places]
        """What the pointer shows, place by place."""
        self.places = [ends(place) for place in places]
        """Where the places lie: left, top, right and bottom."""
        self.texts = [
            (float(text.attrib["x"]), float(text.attrib["y"]), str(text.text))
            for text in root.iter("text")
        ]
        self.words = [word for _, _, word in self.texts]
        self.lines = [
            [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", way)]
            for path in root.findall("./path")
            if path.attrib["fill"] == "none" and (way := path.attrib["d"]).count("L") > 1
        ]
        """The lines of more than two points."""
        self.bars = [float(bar.attrib["width"]) for bar in root.findall("./rect")]
        self.numbers = [
            float(number)
            for part in root.iter()
            for name, value in part.items()
            if name in ("x", "y", "width", "height", "d", "transform", "viewBox")
            for number in re.findall(r"-?[\d.]+|nan|inf", value)
        ]


def ends(place: ElementTree.Element) -> tuple[float, float, float, float]:
    found = re.fullmatch(r"M(\S+) (\S+)H(\S+)V(\S+)H\1z", place.attrib["d"])
    assert found is not None
    left, top, right, bottom = map(float, found.groups())
    return left, top, right, bottom


@pytest.fixture(scope="module")
def run_page() -> str:
    return render_run(run())


@pytest.fixture(scope="module")
def sweep_page() -> str:
    return render_sweep(sweep())


@pytest.fixture(params=["run", "sweep"])
def page(request: pytest.FixtureRequest, run_page: str, sweep_page: str) -> str:
    return run_page if request.param == "run" else sweep_page


# Any page


def test_the_page_names_nothing_outside_itself(page: str) -> None:
    assert not re.search(r"https?:|//|url\(|@import|<link|<iframe|<img", page, re.IGNORECASE)
    names = {name for _, attributes in Page(page).tags for name in attributes}
    assert not names & {"src", "href", "srcset", "action"}


def test_the_page_has_no_scripts_and_its_policy_forbids_them(page: str) -> None:
    found = Page(page)
    policy = next(m["content"] for m in found.all("meta") if "http-equiv" in m)

    assert not found.all("script")
    assert str(policy).startswith("default-src 'none'; style-src 'sha256-")


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
    pictures = [part for part in found.all("div") if part.get("role") == "img"]
    assert len(pictures) == len(found.all("svg")) > 0
    assert all(str(picture["aria-label"]).startswith("Chart of ") for picture in pictures)
    assert all(head["scope"] == "col" for head in found.all("th"))


def test_every_chart_is_a_whole_drawing(page: str) -> None:
    charts = [Chart(drawing) for drawing in DRAWING.findall(page)]

    assert charts
    assert all(chart.words and chart.told for chart in charts if not chart.bars)


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
    assert "3tiers7.38 6.86 to 7.89−5.78 −6.08 to −5.47<0.0014" in text


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
    titles = [told for chart in DRAWING.findall(run_page) for told in Chart(chart).told]

    assert "tick 1: 1" in titles
    assert "tick 2:\nlow 5\nnormal 42\nimportant 3\ncritical 2\npinned 1" in titles


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
def test_a_chart_is_the_same_text_each_time(chart: str) -> None:
    assert CHARTS[chart]() == CHARTS[chart]()


def test_a_line_goes_through_its_values_at_their_ticks() -> None:
    chart = Chart(plots.curves({"loss": [0, 5, 20, 10]}, [10, 11, 12, 13]))
    ((first, second, third, last),) = chart.lines
    zero = next(y for _, y, word in chart.texts if word == "0")
    ten = next(y for _, y, word in chart.texts if word == "10" and y < first[1])
    assert [x for x, _ in (first, second, third, last)] == pytest.approx(
        [first[0] + place * (last[0] - first[0]) / 3 for place in range(4)], abs=0.1
    )
    assert first[1] + 3.5 == pytest.approx(zero, abs=0.11)
    assert last[1] + 3.5 == pytest.approx(ten, abs=0.11)
    assert first[1] - third[1] == pytest.approx(2 * (first[1] - last[1]), abs=0.2)
    assert first[1] - second[1] == pytest.approx((first[1] - last[1]) / 2, abs=0.2)
    named = [
        word for _, y, word in chart.texts if y == max(y for _, y, w in chart.texts if w == "13")
    ]
    assert named == ["10", "11", "12", "13"]


@pytest.mark.parametrize(
    ("values", "figures"),
    [
        ([0, 13], ["0", "5", "10"]),
        ([0, 0.3], ["0", "0.1", "0.2", "0.3"]),
        ([-3, -15], ["−15", "−10", "−5", "0"]),
        (
            [1e6, 1e6 + 0.2],
            ["1,000,000.00", "1,000,000.05", "1,000,000.10", "1,000,000.15", "1,000,000.20"],
        ),
        (
            [0, 4e13],
            [
                "0",
                "10,000,000,000,000",
                "20,000,000,000,000",
                "30,000,000,000,000",
                "40,000,000,000,000",
            ],
        ),
        ([0, 1e102], ["0", "2.5e+101", "5e+101", "7.5e+101", "1e+102"]),
        ([7, 7, 7], ["6.5", "7.0", "7.5"]),
        ([0, 1e-7], ["0", "2.5e-08", "5e-08", "7.5e-08", "1e-07"]),
    ],
    ids=str,
)
def test_the_axis_has_round_numbers_that_can_be_told_apart(
    values: list[float], figures: list[str]
) -> None:
    chart = Chart(plots.curves({"a": values}, range(len(values))))
    left = min(left for left, *_ in chart.places)
    assert [word for x, _, word in chart.texts if x < left] == figures


def test_a_tier_lies_on_the_tiers_before_it() -> None:
    series = {"pinned": [1, 2], "low": [3, 9]}
    root = ElementTree.fromstring(plots.stacked(series, [0, 1]))
    areas = [path for path in root.findall("./path") if path.attrib["d"].endswith("z")]
    tops = [re.findall(r"[ML]\S+ ([\d.]+)", area.attrib["d"])[:2] for area in areas]
    low, pinned = ([float(top) for top in both] for both in tops)
    base = float(areas[0].attrib["d"].rpartition(" ")[2].removesuffix("z"))
    tall = base - pinned[0]
    assert [base - top for top in (*pinned, *low)] == pytest.approx(
        [tall, 2 * tall, 4 * tall, 11 * tall], abs=0.5
    )


def test_bars_are_as_long_as_their_values_and_say_them() -> None:
    chart = Chart(plots.bars({"alice": 3.0, "bob": -1.0, "carol": 1.5, "dave": math.nan}, "loss"))
    three, one_and_a_half, one = chart.bars
    assert (three / 3, one_and_a_half / 1.5) == pytest.approx((one, one), rel=0.01)
    assert chart.words == ["alice", "3", "carol", "1.5", "bob", "−1", "loss"]


def test_an_interval_reaches_from_its_low_to_its_high_end() -> None:
    chart = plots.intervals({"a": [Interval(9, 3, 1, 5)], "b": [Interval(9, 3, 2, 5)]}, [""])
    uprights = re.findall(r'd="M([\d.]+) ([\d.]+)L\1 ([\d.]+)" fill="none" stroke="#(?!999)', chart)
    (_, low, high), (_, lower, same) = ([float(part) for part in line] for line in uprights)
    assert high == same
    assert (low - high) / (lower - same) == pytest.approx(4 / 3, rel=0.01)


def test_a_chart_that_is_a_file_has_colours_for_light_and_dark() -> None:
    chart = plots.curves({"a": [1, 2], "b": [2, 1]}, [0, 1])
    root = ElementTree.fromstring(plots.alone(chart))
    svg = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{svg}svg"
    style = str(root.findtext(f"{svg}style"))
    assert "@media screen and (prefers-color-scheme: dark)" in style
    drawn = {colour for part in root.iter() for colour in (part.get("fill"), part.get("stroke"))}
    changed = {*re.findall(r'\[fill="(#\w+)"\]', style)}
    assert drawn - {None, "none"} <= changed
    assert root.find(f"{svg}rect").attrib["width"] == "100%"  # type: ignore[union-attr]


def test_the_places_of_a_chart_lie_side_by_side_over_its_axis() -> None:
    chart = Chart(plots.curves({"a": [1.0] * 1000}, range(1000)))

    assert 100 <= len(chart.places) <= 120
    assert [right for _, _, right, _ in chart.places[:-1]] == [
        left for left, *_ in chart.places[1:]
    ]
    assert 0 < chart.places[0][0] < chart.places[-1][2] < chart.width
    assert all(0 < top < bottom < chart.height for _, top, _, bottom in chart.places)


@pytest.mark.parametrize("count", [2, 5, 9, 30])
@pytest.mark.parametrize("long", [True, False])
def test_long_names_of_lines_leave_the_plot_its_room(count: int, long: bool) -> None:
    more = " There is a concert at the tavern, and all who have ears are asked to come" * long
    names = [f"{place}.{more}" for place in range(count)]
    chart = Chart(plots.curves({name: [0, 1, 2] for name in names}, [0, 1, 2]))
    left, top, _, bottom = chart.places[0]
    assert chart.places[-1][2] - left > 0.85 * chart.width
    assert bottom - top > 150
    legend = [(x, y, word) for x, y, word in chart.texts if y < top]
    assert (
        len([word for _, _, word in legend if word.startswith(tuple(map(str, range(10))))]) >= count
    )
    assert len({(x, y) for x, y, _ in legend}) == len(legend)  # none lies on the other


def test_means_without_an_interval_can_be_drawn() -> None:
    unknown = Interval(1, 2.0, -math.inf, math.inf)

    chart = Chart(plots.intervals({"a": [unknown, Interval(3, 2, 1, 3)]}, ["5", "9"]))
    assert chart.told == ["5\na: 2", "9\na: 2 (1 to 3)"]


@pytest.mark.parametrize(
    "values",
    [[], [None], [5.0], [0.0] * 3, [7.0] * 3, [math.nan, math.inf, 2.0], [1e300, -1e300], [-3, -2],
     [5e-324, 0], [1e16, 1e16 + 2]],
    ids=str,
)  # fmt: skip
def test_any_values_can_be_drawn(values: list[float | None]) -> None:
    x = range(len(values))
    points = [None if value is None else Interval(3, value, value, value) for value in values]

    for chart in (
        plots.curves({"a": values, "b": values}, x),
        plots.stacked({"a": values, "b": values}, x),
        plots.bars(dict(zip("abc", values, strict=False))),
        plots.intervals({"a": points}, [str(place) for place in x]),
        plots.side_by_side({"a": values}, {"a": values}, left_x=x, right_x=x),
    ):
        drawn = Chart(chart)
        assert all(-200 <= number <= 1_000 for number in drawn.numbers)


def test_a_gap_parts_a_line_and_a_value_between_gaps_is_a_dot() -> None:
    values = [1, 2, 3, None, 4, math.nan, 5, 6, 7]
    chart = plots.curves({"a": values}, range(9))
    assert [len(line) for line in Chart(chart).lines] == [3, 3]
    assert chart.count("a3 3 0 1 0 6 0") == 1


def test_a_very_long_series_is_drawn_quickly() -> None:
    values = [float(tick * 7919 % 1013) for tick in range(200_000)]

    assert len(plots.curves({"noise": values}, range(len(values)))) < 50_000


def test_peaks_stay_when_a_long_series_is_thinned() -> None:
    early, late = ([float(x == peak) for x in range(50_000)] for peak in (11_415, 31_415))
    x = range(50_000)

    tops = [
        min(Chart(plots.curves({"a": values}, x)).lines[0], key=lambda at: at[1])
        for values in (early, late)
    ]
    assert [round(at / 440, 1) for at, _ in tops] == [0.3, 0.7]


@pytest.mark.parametrize(
    "name", ["$x_{$", "世界", "\u202eab\n", "\ud800", "", "<b>&\"'\0"], ids=ascii
)
def test_any_name_can_be_drawn(name: str) -> None:
    for chart in (
        plots.bars({name: 1.0}, name),
        plots.curves({name: [1, 2], "b": [2, 3]}, [0, 1]),
        plots.intervals({name: [Interval(3, 2, 1, 3)]}, [name], name, x_label=name, y_label=name),
        plots.side_by_side({name: [1]}, {}, left_x=[0], right_x=[], names=(name, name)),
    ):
        assert not re.search("[\x00-\x09\x0b-\x1f\u202e\ud800]", chart)
        assert Chart(chart).width >= 480


def test_of_many_agents_the_largest_twenty_are_drawn() -> None:
    many = {f"agent_{number:04}": float(number) for number in range(1_000)}
    largest = dict(sorted(many.items())[-20:])

    assert plots.bars(largest, x_label="the 20 largest of 1,000") == plots.bars(many)


def test_runs_without_a_common_metric_can_stand_side_by_side() -> None:
    chart = Chart(plots.side_by_side({"a": [1]}, {"b": [2, 3]}, left_x=[0], right_x=[0, 1]))

    assert chart.width == 960
    assert {"a", "b", "left", "right"} <= {*chart.words}
    assert chart.told == [
        "tick 0:\nleft 1\nright –", "tick 1:\nleft –\nright –",
        "tick 0:\nleft –\nright 2", "tick 1:\nleft –\nright 3",
    ]  # fmt: skip


def test_the_tick_in_which_two_runs_part_is_marked() -> None:
    both = {"left_x": range(100), "right_x": range(100)}
    for tick in (3, 98):
        chart = plots.side_by_side({"a": [1.0] * 100}, {"a": [2.0] * 100}, diverged=tick, **both)
        assert f">differ from {tick}<" in chart


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (-0.0, "0"), (1234567, "1,234,567"), (1234.5, "1,234"), (0.123456, "0.1235"),
        (-3.0, "−3"), (None, "–"), (math.nan, "–"), (math.inf, "∞"), (1e20, "1e+20"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_people_do(value: float | None, text: str) -> None:
    assert number(value) == text


def test_importing_the_report_does_not_import_numpy() -> None:
    code = "import sys, agents.simulation.reports.report\nprint({'numpy'} & {*sys.modules})"

    assert printed_by(code) == ("set()\n", "")


def test_a_metric_called_tick_is_no_column_of_the_table() -> None:
    records = [{"tick": number, "metrics": {"a": 1.0, "tick": 5.5}} for number in (1, 2)]
    assert metric_rows(records) == [{"tick": 1, "a": 1.0}, {"tick": 2, "a": 1.0}]


def test_a_sweep_shows_every_seed_and_its_metrics_over_ticks() -> None:
    over = {name: band([0, 1, 2], [[1, 2, 3], [2, 3, 5], [0, 1, 4]]) for name in ("flat", "tiers")}
    page = render_sweep(sweep(curves=[("loss", "limit 3", over)]))

    assert "<h3>loss, limit 3</h3>" in page
    assert page.count('fill-opacity=".18"') == 2  # a band for each variant
    assert page.count("<circle") == 2 * 2 * 4  # variants, points and seeds
