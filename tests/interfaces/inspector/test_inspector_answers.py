"""What the inspector answers is what the Python API says, at any tick."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import orjson
import pytest
from inspected_sites import SIMULATIONS, ask, looked_at

from agents import MemoryBank, analysis
from agents.config.load import load_settings
from agents.interfaces.inspector.agent_view import memory_row
from agents.interfaces.inspector.inspection import Inspection
from agents.interfaces.inspector.parameters import CantTell, NotThere, WrongParameter
from agents.memory.tiers import RETENTION_NAMES, TEMPERATURE_NAMES, TIER_NAMES, Tier
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.policies.cassette import Cassette
from agents.simulation.runs.record import past_bank
from agents.simulation.runs.run import Run
from agents.simulation.runs.why import as_json, decision, life

AGENTS = [f"agent_{number:02}" for number in range(5)]


def _random_places(seed: int, count: int, first: int = 0) -> list[tuple[str, int]]:
    random = Random(seed)
    return [(random.choice(AGENTS), random.randint(first, 40)) for _ in range(count)]


def _plain(value: object) -> object:
    """The value as it comes out of the server."""
    return orjson.loads(orjson.dumps(value, default=list))


def test_about_names_the_run_its_agents_and_its_numbers(site: Inspection, market: Path) -> None:
    about = ask(site, "about")
    (run,) = about["runs"]
    assert (about["kind"], about["name"], about["allow_branch"]) == ("run", market.name, False)
    assert run["agents"] == AGENTS
    assert (run["first_tick"], run["last_tick"], run["is_finished"]) == (0, 40, True)
    assert run["metrics"] == ["loss", "loss_tick", "welfare", "trades", "scams"]
    counted = ["retrievals", "actions", "refusals"]
    assert run["per_agent"] == ["loss", "wealth", "memories", "pinned or critical", *counted]
    assert run["has_decisions"] is True
    assert run["damaged"] is None


def test_memories_are_those_of_the_bank_after_the_tick(site: Inspection, market: Path) -> None:
    for agent, tick in [(AGENTS[0], 0), (AGENTS[1], 40), *_random_places(1, 6)]:
        with past_bank(market, tick) as bank:
            expected = [memory_row(memory) for memory in bank.agent(agent).all()]
        found = ask(site, "memories", agent=agent, tick=tick)
        assert found["total"] == len(expected)
        assert _plain(found["rows"]) == _plain(expected)


def test_explain_is_the_banks_own_after_the_tick(site: Inspection, market: Path) -> None:
    for agent, tick in _random_places(2, 4):
        with past_bank(market, tick) as bank:
            expected = bank.agent(agent).explain("who cheated me?", context=True)
        query = {"agent": agent, "tick": tick, "query": "who cheated me?"}
        found = ask(site, "explain", **query)
        assert found["total"] == len(expected)
        assert [
            (row["id"], row["rank"], row["score"], row["total"], row["reason"])
            for row in found["rows"]
        ] == [
            (row.memory.id, row.rank, row.score, row.boosted_score, row.reason) for row in expected
        ]


def test_a_decision_is_the_one_that_why_tells(site: Inspection, market: Path) -> None:
    for agent, tick in _random_places(3, 5, first=1):
        told = decision(market, agent, tick)
        expected = as_json(told)
        found = ask(site, "agent", agent=agent, tick=tick)
        for name in ("observed", "heard", "errors", "facts", "query", "asked", "did", "note"):
            assert _plain(found[name]) == _plain(expected[name]), name
        for row in found["given"]:
            assert _WHY[row["part"]] in row.pop("reason")
        assert _plain(found["given"]) == _plain(expected["given"])
        assert found["reasons"] == dict(told.reasons())
        with past_bank(market, tick - 1) as bank:
            bank.advance(tick)
            assert found["context"] == bank.agent(agent).get_relevant_memories(told.query)
        deciding = ask(site, "explain", agent=agent, tick=tick, when="deciding")
        not_given = [row["id"] for row in deciding["rows"] if row["rank"] is None]
        assert not_given == [row.memory.id for row in told.not_given]
        assert deciding["query"] == told.query


_WHY = {"pinned": "It is pinned", "hot": "It is hot", "chosen": "It ranked by "}


def test_nobody_decides_in_tick_0_and_the_answer_says_so(site: Inspection) -> None:
    found = ask(site, "agent", agent=AGENTS[0], tick=0)
    assert "nobody decides anything in tick 0" in found["note"]
    assert found["given"] == []


def test_a_life_is_the_one_that_why_tells(site: Inspection, market: Path) -> None:
    random = Random(4)
    with past_bank(market, 40) as bank:
        own = bank.agent(AGENTS[3]).all()
    chosen = [*random.sample(own, 3), *[memory for memory in own if memory.tier == 0][:1]]
    for memory in chosen:
        told = life(market, memory.id)
        found = ask(site, "memory", id=memory.id)
        assert found["memory"]["text"] == told.text == memory.content
        assert found["memory"]["agent"] == AGENTS[3]
        moments = [each for each in told.moments if each.what not in ("given", "found")]
        for row, each in zip(found["events"], moments, strict=True):
            assert (row["tick"], row["what"]) == (each.tick, each.what)
            text, _, birth = row["text"].partition("; ")
            assert text == each.detail
            assert not birth or each.what == "born"
        given = [each for each in told.moments if each.what == "given"]
        assert [(row["tick"], row["score"]) for row in found["decisions"]] == [
            (each.tick, each.score) for each in given
        ]
        for row, each in zip(found["decisions"], given, strict=True):
            assert each.detail.startswith(f"{row['part']}, place {row['place']} of")


def test_a_birth_names_the_observation_or_the_action(site: Inspection, market: Path) -> None:
    births = set()
    for agent, tick in _random_places(6, 6, first=1):
        told = decision(market, agent, tick)
        expected = [told.observed, *told.heard]
        words = ["it is what the agent observed"] * bool(told.observed)
        words += ["it is a remark that the agent heard"] * len(told.heard)
        for deed in told.did:
            if deed.memory_id is not None:
                expected.append(deed.text)
                words.append(f"by its action {deed.name}, when it had observed: {told.observed}")
        rows = ask(site, "tick", tick=tick, agent=agent)["events"]
        born = [row for row in rows if row["what"] == "born"]
        assert [row["text"] for row in born[: len(words)]] == [text for text in expected if text]
        for row, word in zip(born, words, strict=False):
            first = ask(site, "memory", id=row["memory_id"])["events"][0]
            assert first["text"].partition("; ")[2] == word
            births.add(word.partition(" ")[0])
    assert births == {"it", "by"}


def test_a_demotion_names_the_memory_that_needed_the_room(tmp_path: Path) -> None:
    with MemoryBank.open(
        tmp_path / "bank", storage={"sync": "manual"}, memory={"max_pinned": 2, "max_critical": 1}
    ) as bank:
        alice = bank.agent("alice")
        ids = [alice.add(f"rule {number}", "pinned").id for number in range(3)]
        bank.advance(1)
        normal = alice.add("it may matter").id
        alice.pin(normal)
        with bank.transaction():
            newer = [alice.add(f"newer rule {number}", "pinned").id for number in range(2)]
    with looked_at(tmp_path / "bank") as site:
        lives = [ask(site, "memory", id=each)["events"] for each in (*ids, normal, newer[1])]
    moves = [[(row["tier"], row["by"]) for row in life if row["what"] == "tier"] for life in lives]
    # The first made room for the third, and then for the second, which made room for a promotion.
    assert moves[0] == [("critical", ids[2]), ("important", ids[1])]
    assert moves[1][0] == ("critical", normal)
    assert moves[3][0] == ("pinned", None)
    assert moves[2][0] == ("critical", None)  # two memories came at once
    assert moves[4] == []


def test_curves_are_the_records_of_the_ticks(site: Inspection, market: Path) -> None:
    with MemoryBank.at(market / "bank") as bank:
        records = [record for record, _ in ticks_of(bank).records()]
    found = ask(site, "series")
    assert found["ticks"] == [record["tick"] for record in records]
    assert found["metrics"]["loss"] == [record["metrics"]["loss"] for record in records]
    for name, values in {**found["tiers"], **found["temperatures"]}.items():
        assert values == [record[name] for record in records], name


def test_numbers_of_agents_are_those_of_bank_and_world(site: Inspection, market: Path) -> None:
    ask(site, "memory", id=_any_id(site))  # all is read now
    found = ask(site, "heat", of="memories")
    assert (found["agents"], found["total"], found["width"]) == (AGENTS, 5, 1)
    for agent, tick in _random_places(5, 4):
        with past_bank(market, tick) as bank:
            count = bank.agent(agent).count()
        assert found["values"][AGENTS.index(agent)][found["ticks"].index(tick)] == count
    losses = ask(site, "heat", of="loss")
    series = ask(site, "series")
    assert [sum(column) for column in zip(*losses["values"], strict=True)] == series["metrics"][
        "loss"
    ]
    retrieved = ask(site, "heat", of="retrievals", offset=1, limit=2)
    assert retrieved["agents"] == AGENTS[1:3]
    with MemoryBank.at(market / "bank") as bank:
        totals = [record["retrieved"] for record, _ in ticks_of(bank).records()][1:]
    every = ask(site, "heat", of="retrievals")
    assert [sum(column) for column in zip(*every["values"], strict=True)] == totals


def _any_id(site: Inspection) -> str:
    return str(ask(site, "memories", agent=AGENTS[0], tick=40)["rows"][0]["id"])


def test_a_tick_lists_what_happened_in_it(site: Inspection, market: Path) -> None:
    with MemoryBank.at(market / "bank") as bank:
        records = {record["tick"]: record for record, _ in ticks_of(bank).records()}
        events = dict(ticks_of(bank).events())
    for tick in (1, 17, 40):
        found = ask(site, "tick", tick=tick)
        assert found["counts"]["added"] == records[tick]["added"]
        assert found["metrics"] == records[tick]["metrics"]
        born = [row["text"] for row in found["events"] if row["what"] == "born"]
        assert born == [event.content for event in events[tick] if event[0] == "add"]
        assert found["total"] == len(found["events"])
        did = [row for row in found["events"] if row["what"] == "did"]
        assert {row["agent"] for row in did} == {*AGENTS}
        own = ask(site, "tick", tick=tick, agent=AGENTS[2])["events"]
        assert own == [row for row in found["events"] if row["agent"] == AGENTS[2]]


def test_search_finds_every_memory_that_holds_all_words(site: Inspection, market: Path) -> None:
    with past_bank(market, 40) as bank:
        memories = [memory for agent in AGENTS for memory in bank.agent(agent).all()]
    for text in (
        "never delivered",
        "delivered NEVER",
        "oi",
        "of cloth",
        "i o",
        "07 coins, no such",
    ):
        words = text.lower().split()
        expected = {
            each.id for each in memories if all(word in each.content.lower() for word in words)
        }
        found = ask(site, "search", q=text, of="memories")
        rows = found["rows"]
        if found["total"] <= 500:
            assert {row["memory_id"] for row in rows} == expected
        assert all(word in row["text"].lower() for row in rows for word in words)
    texts = ("never delivered", "delivered never")
    both = [ask(site, "search", q=text, of="memories")["total"] for text in texts]
    assert both[0] == both[1] > 0
    with pytest.raises(WrongParameter, match="words"):
        ask(site, "search", q=" ".join(map(str, range(1000))))


def test_search_finds_a_memory_by_its_id(site: Inspection, market: Path) -> None:
    with past_bank(market, 40) as bank:
        memory = bank.agent(AGENTS[2]).all()[7]
    found = ask(site, "search", q=f" {memory.id} ")
    row = {"what": memory.kind, "agent": AGENTS[2], "tick": memory.created_tick}
    assert found["rows"] == [{**row, "memory_id": memory.id, "text": memory.content}]
    assert (found["total"], found["more"]) == (1, False)
    assert ask(site, "search", q=memory.id[:-12] + "f" * 12)["total"] == 0  # never stored


def test_search_finds_what_was_done_by_its_reason(site: Inspection) -> None:
    rows = ask(site, "search", q="decline cheated me", of="decisions")["rows"]
    assert {row["text"] for row in rows} == {"decline, because: the seller cheated me"}
    did = ask(site, "agent", agent=rows[0]["agent"], tick=rows[0]["tick"])["did"]
    assert did[0]["reason"] == "the seller cheated me"


def test_search_finds_agents_and_takes_signs_as_words(site: Inspection) -> None:
    named = ask(site, "search", q="AGENT_03")["rows"][0]
    assert (named["what"], named["agent"]) == ("agent", "agent_03")
    assert ask(site, "search", q='" OR *') == {"total": 0, "more": False, "rows": []}


@pytest.mark.parametrize("tick", [3, 7, 12])
def test_the_population_is_that_of_a_study_up_to_the_tick(rumor: Path, tick: int) -> None:
    study = analysis.study(rumor, tick)
    with looked_at(rumor) as site:
        found = ask(site, "population", tick=tick)
    edges = study.tells().to_pylist()
    assert edges
    assert (found["edges"], found["edges_total"]) == (edges, len(edges))
    assert found["told_total"] == len(study.columns.told.row)
    assert len(found["told"]) == min(200, found["told_total"])
    told = [each for each in found["beliefs"] if each["by"] == "source"]
    names = study.spreads().column_names
    spreads = study.spreads().to_pylist()
    assert [{name: each[name] for name in names} for each in told] == spreads[: len(told)]
    for each in told[:5]:
        assert each["first"] == study.spread(each["origin"]).table.to_pylist()
    with past_bank(rumor, tick) as bank:
        for each in found["beliefs"]:
            holders = {row["agent"] for row in each["first"] if row["gone"] is None}
            assert each["now"] == len(holders)
            for row in each["first"]:
                memory = bank.agent(row["agent"]).get(row["memory_id"])
                assert memory.content == each["text"] or each["by"] == "source"
                assert row["teller"] == (memory.source.teller if memory.source else memory.speaker)


def test_a_board_is_nobody_of_the_population(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        guild = bank.group("guild", ["alice", "bob"])
        guild.post("bob", "the mill burns")
        one = bank.agent("alice").add("the mill burns")
        guild.post("alice", "the mill burns")
        bank.agent("alice").social.tell("bob", one.id)
        bank.agent("bob").add("the bridge is open")
    study = analysis.study(tmp_path / "bank")
    with looked_at(tmp_path / "bank") as site:
        found = ask(site, "population")
    assert (found["agents"], found["total"]) == (["alice", "bob"], 2)
    assert [(each["teller"], each["listener"]) for each in found["edges"]] == [("alice", "bob")]
    assert found["edges"] == study.tells().to_pylist()
    assert [(each["holders"], each["now"]) for each in found["beliefs"]] == [(2, 2)]
    assert [each["text"] for each in found["told"]] == ["the mill burns"]
    assert found["overlap"] == [[1.0, 0.5], [0.5, 1.0]]


def test_agents_without_tells_share_what_they_say_in_the_same_words(site: Inspection) -> None:
    found = ask(site, "population", tick=40)
    with past_bank(Path(site.runs[0].folder), 40) as bank:
        own = [
            {each.content for each in bank.agent(name).all() if each.kind not in _NO_BELIEFS}
            for name in AGENTS
        ]
    assert (found["edges"], found["told"]) == ([], [])
    for one, other in ((0, 1), (2, 4), (3, 3)):
        share = len(own[one] & own[other]) / len(own[one] | own[other])
        assert found["overlap"][one][other] == pytest.approx(share, abs=1e-4)
    held = sorted(sum(text in each for each in own) for text in set[str]().union(*own))
    counts = sorted(each["now"] for each in found["beliefs"])
    assert counts[-3:] == held[-3:]
    assert {each["by"] for each in found["beliefs"]} == {"text"}


_NO_BELIEFS = ("observation", "action", "note")


def test_a_told_memory_names_its_teller_and_the_first_of_the_chain(rumor: Path) -> None:
    with past_bank(rumor, 12) as bank:
        memory = max(
            (each for name in bank.agents() for each in bank.agent(name).all() if each.source),
            key=lambda each: each.source.hands if each.source else 0,
        )
    assert memory.source is not None
    with looked_at(rumor) as site:
        found = ask(site, "memory", id=memory.id)
        assert found["source"] == memory.source._asdict()
        assert found["events"][0]["by"] == memory.source.teller
        origin = ask(site, "memory", id=memory.source.origin_id)
    assert (origin["source"], origin["memory"]["agent"]) == (None, memory.source.origin_agent)


def test_a_life_tells_where_the_memory_stood_after_any_tick(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        alice = bank.agent("alice")
        ids = [alice.add(f"fact {number}", tier="normal").id for number in range(4)]
        ids.append(alice.add("an errand", ttl=3).id)
        states = [_states(bank, ids)]
        moves: list[Callable[[], object]] = [
            lambda: alice.pin(ids[0]),
            lambda: alice.update(ids[1], temperature="warm"),
            lambda: alice.unpin(ids[0]),
            lambda: alice.update(ids[2], retention="archived"),
            lambda: alice.update(ids[1], temperature="hot"),
            lambda: alice.update(ids[2], retention="active"),
            lambda: alice.set_tier(ids[3], "critical"),
        ]
        for tick, move in enumerate(moves, start=1):
            bank.advance(tick)
            move()
            states.append(_states(bank, ids))
        bank.advance(len(moves) + 1)
    with looked_at(tmp_path / "bank") as site:
        for place, identifier in enumerate(ids):
            events = ask(site, "memory", id=identifier)["events"]
            for tick, known in enumerate(states):
                *_, last = (event for event in events if event["tick"] <= tick)
                is_active = last["retention"] == "active"
                is_over = is_active and last["expires"] is not None and last["expires"] <= tick
                found = last["tier"], last["temperature"], last["retention"], is_over
                assert found == known[place], (identifier, tick)


def _states(bank: MemoryBank, ids: list[str]) -> list[tuple[str, str, str, bool]]:
    """Where memories of alice stand now: tier, temperature, retention, whether they are over."""
    found = []
    for identifier in ids:
        memory = bank.engine.state.memory("alice", int(identifier[-12:], 16))
        assert memory is not None
        names = TIER_NAMES[memory.tier], TEMPERATURE_NAMES[memory.temperature]
        over = memory.is_expired(bank.tick)
        found.append((*names, RETENTION_NAMES[memory.retention], over))
    return found


RECORDED = SIMULATIONS / "recorded" / "market_llm"


def test_costs_are_those_of_the_summary_while_the_cassette_grows(tmp_path: Path) -> None:
    run = shutil.copytree(RECORDED, tmp_path / "run")
    whole = (run / "cassette.jsonl").read_bytes().splitlines(keepends=True)
    (run / "cassette.jsonl").write_bytes(b"".join(whole[:5]) + whole[5][:40])
    asked = Cassette(RECORDED / "cassette.jsonl", replay=True).of(1, "agent_00")[0]
    summary = json.loads((RECORDED / "summary.json").read_text())["calls"]
    with looked_at(run) as site:
        assert ask(site, "about")["runs"][0]["has_calls"]
        assert ask(site, "costs")["all"]["calls"] == 5
        (run / "cassette.jsonl").write_bytes(b"".join(whole))
        found = ask(site, "costs")
        away = asked._replace(tick=2, agent="new", reply=None, kind="Timeout", error="no reply")
        Cassette(run / "cassette.jsonl").record(away)
        assert ask(site, "costs")["problems"][-1]["why"] == "Timeout: no reply"
        Cassette(run / "cassette.jsonl").record(asked._replace(tick=2, agent="new"))
        more = ask(site, "costs")
    assert found["all"] == {name: summary[name] for name in found["all"]}
    assert found["usable"] == summary["usable"]
    by_agent = {name: own["read"] for name, own in summary["by_agent"].items()}
    assert {row["name"]: row["read"] for row in found["by"]["agent"]} == by_agent
    columns = found["tokens"]
    assert sum(columns["read anew"]) + sum(columns["cached"]) == summary["read"]
    assert (more["all"]["calls"], more["usable"]) == (summary["calls"] + 1, summary["usable"] + 1)
    assert more["problems"] == found["problems"]  # the answer counts before the line without one


def test_a_run_of_rules_has_no_costs(site: Inspection) -> None:
    assert ask(site, "about")["runs"][0]["has_calls"] is False
    with pytest.raises(CantTell, match="no language model was asked"):
        ask(site, "costs")


def test_the_population_has_the_society_of_the_tick(tmp_path: Path) -> None:
    society = {"places": [{"place": "work", "groups": 2, "hours": [0, 4]}], "talk": 0.5}
    own = {"world": "rumor", "agents": 8, "ticks": 6, "society": society}
    settings = load_settings({"seed": 3, "storage": {"sync": "manual"}, "simulation": own})
    with Run.create(tmp_path / "run", settings) as run:
        list(run.advance(6))
    with looked_at(tmp_path / "run") as site:
        at_work, at_night = (ask(site, "population", tick=tick)["society"] for tick in (2, 5))
    assert at_work["agents"] == settings.simulation.agent_ids()
    assert len(at_work["places"]) == 8
    assert len(at_work["ties"]) == 2 * 6  # two groups of four, each two of them
    assert at_night["ties"] == []


def test_a_run_without_a_society_has_none_in_its_population(rumor: Path) -> None:
    with looked_at(rumor) as site:
        assert ask(site, "population", tick=3)["society"] is None


def test_the_numbers_of_a_tick_are_those_of_the_map_with_the_range_of_all_ticks(
    site: Inspection,
) -> None:
    for name in ask(site, "about")["runs"][0]["per_agent"]:
        found = ask(site, "numbers", of=name, tick=17)
        heat = ask(site, "heat", of=name)
        column = heat["ticks"].index(17)
        known = [value for row in heat["values"] for value in row if value is not None]
        assert found == {
            "of": name, "tick": 17, "low": min(known), "high": max(known),
            "agents": heat["agents"], "values": [row[column] for row in heat["values"]],
        }  # fmt: skip
    with pytest.raises(NotThere, match="no number of an agent is called 'hope'"):
        ask(site, "numbers", of="hope", tick=17)


def test_the_share_that_is_pinned_or_critical_is_that_of_the_memories_of_the_tick(
    tmp_path: Path,
) -> None:
    with MemoryBank.open(
        tmp_path / "bank", storage={"sync": "manual"}, memory={"max_pinned": 2, "max_critical": 1}
    ) as bank:
        alice, bob = bank.agent("alice"), bank.agent("bob")
        rules = [alice.add(f"rule {number}", "pinned").id for number in range(3)]
        bank.group("guild", ["alice", "bob"]).post("bob", "the mill burns")
        bank.advance(1)
        alice.add("it may matter")
        alice.delete(rules[0])
        bank.advance(2)
        alice.update(rules[0], retention="active")
        alice.unpin(rules[2])
        alice.add("it is so", "critical")
        bob.add("the weather is fine")
        bank.advance(5)
        alice.delete(rules[2])
    with looked_at(tmp_path / "bank") as site:
        for tick in range(6):  # nothing happens in ticks 3 and 4
            found = ask(site, "numbers", of="pinned or critical", tick=tick)
            with MemoryBank.at(tmp_path / "bank", tick) as past:
                held = [[each.tier for each in past.agent(name).all()] for name in ("alice", "bob")]
            shares = [
                sum(tier <= Tier.CRITICAL for tier in own) / len(own) if own else None
                for own in held
            ]
            assert (found["agents"], found["values"]) == (["alice", "bob"], shares), tick
