"""What the inspector keeps in memory while a run is looked at."""

from pathlib import Path

import pytest
from inspected_sites import ask, looked_at

from agents.interfaces.inspector import past


def test_the_banks_that_are_kept_have_few_memories(
    market: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 60
    monkeypatch.setattr(past, "_MOST_MEMORIES", most)
    with looked_at(market) as site:
        banks = set()
        for tick in (5, 10, 38):
            for number in range(5):
                total = ask(site, "memories", agent=f"agent_0{number}", tick=tick)["total"]
                kept = site.runs[0].past.kept()
                assert kept.memories <= most or kept.banks == 1, "the bank in use may be larger"
                assert kept.memories >= total
                banks.add(kept.banks)
    assert max(banks) > 1


def test_no_more_than_eight_banks_are_kept(market: Path) -> None:
    with looked_at(market) as site:
        for tick in (5, 35):
            for number in range(5):
                ask(site, "memories", agent=f"agent_0{number}", tick=tick)
        assert site.runs[0].past.kept().banks == 8


@pytest.mark.slow
def test_the_stages_of_one_agent_are_bounded_and_every_tick_is_reached(
    market: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = (40, 3, 22, 39, 8, 31)
    with looked_at(market) as site:
        expected = [ask(site, "memories", agent="agent_01", tick=tick) for tick in ticks]
    monkeypatch.setattr(past, "_STEP", 2)
    with looked_at(market) as site:
        own = site.runs[0].past
        ask(site, "memories", agent="agent_01", tick=40)
        most = own.kept().bytes // 3
        monkeypatch.setattr(past, "_MOST_BYTES", most)
        found = []
        for tick in ticks:
            found.append(ask(site, "memories", agent="agent_01", tick=tick))
            assert own.kept().bytes <= most or tick == ticks[0]
            ask(site, "memories", agent="agent_02", tick=tick)
    assert found == expected
