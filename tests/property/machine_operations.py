"""What the state machine does to a bank: each operation, to the bank and to the model alike.

Names and arguments are those that ``machine_strategies.operation`` makes; ``test`` is the
:class:`BankUnderTest`.
"""

from typing import Any

from model.comparison import fields, look, plain
from model.memories import ACTIVE, COLD, CRITICAL, HOT, PINNED, TEMPERATURES, WARM
from model.searching import Only

from agents import MemoryBank
from asking import asked

# Adding


def add(test, item) -> None:
    agent, text, (tier, spelled), extra, options = item
    text = test.text(text)
    _add_one(
        test,
        lambda bank: bank.agent(agent).add(text, spelled, extra, **options),
        (agent, text, tier, extra, options),
    )


def update(test, agent, pick, text, tier) -> None:
    """A new version of a memory; without a tier, in the same one."""
    identifier, sequence = test.choose(agent, pick)
    text, (meant, told) = test.text(text), tier or (None, None)
    test.both(
        lambda bank: bank.agent(agent).update(identifier, text, told),
        lambda: test.model.update(agent, sequence, identifier, text, meant),
    )


def add_many(test, items, agent=None) -> None:
    """The twin gets them one by one; with ``agent``, all are that agent's."""
    items = [(agent or owner, test.text(text), *others) for owner, text, *others in items]
    spelled = [(owner, text, tier[1], *others) for owner, text, tier, *others in items]
    wanted = [(owner, text, tier[0], *others) for owner, text, tier, *others in items]
    test.both(
        (lambda bank: bank.agent(agent).add_many([item[1:] for item in spelled]))
        if agent
        else (lambda bank: bank.add_many(spelled)),
        lambda: test.model.add_many(wanted),
        [lambda bank, item=item: bank.add_many([item]) for item in spelled],
    )


def record_observation(test, agent, text, tier) -> None:
    text = test.text(text)
    _add_one(
        test,
        lambda bank: bank.agent(agent).record_observation(text, tier[1]),
        (agent, text, int(tier[0]), None, {"kind": "observation"}),
    )


def record_action(test, agent, success, tier) -> None:
    text = f"transfer {'succeeded' if success else 'failed'}: 5 to bob"
    kept = {"action_type": "transfer", "success": success}
    _add_one(
        test,
        lambda bank: bank.agent(agent).record_action("transfer", "5 to bob", success, tier[1]),
        (agent, text, int(tier[0]), kept, {"kind": "action"}),
    )


def _add_one(test, call, item) -> None:
    test.both(call, lambda: test.model.add_many([item])[0])


# One memory


def of_memory(test, name, agent, pick, *arguments) -> None:
    """What has one memory for its object; a tier comes with its spelling."""
    hidden = name == "restore" or (name == "forget" and pick % 2 == 0)
    identifier, sequence = test.choose(agent, pick, hidden)
    told = [each[1] if isinstance(each, tuple) else each for each in arguments]
    meant = [int(each[0]) if isinstance(each, tuple) else each for each in arguments]
    memory = test.model.memories.get((agent, sequence))
    test.both(
        lambda bank: asked(bank.agent(agent), name, identifier, *told),
        lambda: getattr(test.model, name)(agent, sequence, *meant),
    )
    is_unique = memory is not None and memory.content.startswith("zq")
    if name == "forget" and is_unique and memory.key not in test.model.memories:
        test.forgotten.append(memory.content)


def pin_what_is_critical(test, agent, pick) -> None:
    """Where both tiers are full, one moves down into the place that this one leaves."""
    own = [memory.key for memory in test.model.seen(agent) if memory.tier == CRITICAL]
    if own:
        _do(test, "pin", own[pick % len(own)])


def delete_and_restore(test, agent, pick, ticks) -> None:
    """The grace may be over, and nobody swept."""
    own = [memory.key for memory in test.model.seen(agent) if memory.tier != PINNED]
    if own:
        key = own[pick % len(own)]
        _do(test, "delete", key)
        advance(test, ticks)
        _do(test, "restore", key)


def _do(test, name, key, *arguments) -> None:
    agent, identifier = key[0], test.ids[key]
    test.both(
        lambda bank: asked(bank.agent(agent), name, identifier, *arguments),
        lambda: getattr(test.model, name)(*key, *arguments),
    )


def cold_to_hot_to_cold(test, agent, pick) -> None:
    """Lossless: all is as before but for temperature and use."""
    cold = [m for m in test.model.seen(agent) if m.temperature == COLD and test.model.fits(m)]
    if not cold:
        return
    key = cold[pick % len(cold)].key
    before, vector, recalls = look(test.bank)[key]
    _do(test, "promote", key)
    _do(test, "demote", key, "cold")
    after, same_vector, same_recalls = look(test.bank)[key]
    used = {"access_count": before.access_count + 1, "last_access_tick": test.model.tick}
    used["relevance"] = after.relevance
    assert after.relevance >= before.relevance
    assert tuple(after) == tuple(before._replace(**used))
    assert (vector, recalls) == (same_vector, same_recalls)


def spill(test, agent, count, picks, tokens=None, session=None) -> None:
    chosen = None if picks is None else [test.choose(agent, pick) for pick in picks]
    ids, sequences = (
        None if chosen is None else [each[part] for each in chosen] for part in range(2)
    )
    test.both(
        lambda bank: dict(
            bank.agent(agent).spill(count, ids, tokens=tokens, session=session).moved
        ),
        lambda: {
            test.ids[agent, sequence]: to
            for sequence, to in test.model.spill(agent, count, sequences, tokens, session).items()
        },
    )


# Searching


def search(test, agent, query, limit, tokens, filters, include_cold) -> None:
    if not query.strip():
        filters = {**filters, "min_score": None}
    test.both(
        lambda bank: bank.agent(agent).search(
            query, limit, context_tokens=tokens, include_cold=include_cold, **filters
        ),
        lambda: test.model.search_many(
            [(agent, query)], limit, tokens, _only(include_cold=include_cold, **filters)
        )[0],
    )
    explain(test, agent, query, limit, tokens)


def explain(test, agent, query, limit, tokens) -> None:
    """Sees what a search sees, tells why it does not see the rest, and counts as no use."""
    rows = test.bank.agent(agent).explain(query, limit, context_tokens=tokens)
    hidden = ("cold", "archived", "expired")
    explained = [row for row in rows if not row.reason.startswith((*hidden, "superseded by "))]
    assert plain(explained) == plain(test.model.searching(agent).explain(query, limit, tokens))


def _only(include_cold, tier=None, temperature=None, kind=None, tags=None, **others) -> Only:
    """What a search with these filters may give."""
    named = ("hot", "warm") if temperature is None else temperature
    temperatures = {TEMPERATURES.index(each) for each in named} | (
        {COLD} if include_cold else set()
    )
    tiers, kinds, words = (None if each is None else frozenset(each) for each in (tier, kind, tags))
    since, least = others.get("since_tick") or 0, others.get("min_score") or 0.0
    return Only(tiers, frozenset(temperatures), kinds, words, since, least, others.get("session"))


def search_many(test, requests, limit, tokens) -> None:
    test.both(
        lambda bank: bank.search_many(requests, limit, context_tokens=tokens),
        lambda: test.model.search_many(requests, limit, tokens),
    )
    test.both(
        lambda bank: bank.relevant_many(requests, limit, context_tokens=tokens),
        lambda: test.model.relevant_many(requests, limit, tokens),
    )


def relevant(test, agent, query, limit, tokens, session=None) -> None:
    test.both(
        lambda bank: bank.agent(agent).get_relevant_memories(
            query, limit, context_tokens=tokens, session=session
        ),
        lambda: test.model.relevant_many([(agent, query)], limit, tokens, session)[0],
    )
    front = test.bank.agent(agent).get_relevant_memories(session=session)
    assert front == test.model.hot_context(agent, session)


def recall(test, agent, query, limit, auto_promote, kinds, least, with_cold, session=None) -> None:
    named = None if kinds is None else frozenset(kinds)
    heats = frozenset({HOT, WARM, COLD} if with_cold else {HOT, WARM})
    only = Only(None, heats, named, min_score=least or 0.0, session=session)

    def expected() -> list[Any]:
        items, scores, hot = test.model.recall(agent, query, limit, auto_promote, only)
        return [items, scores, [test.ids[agent, sequence] for sequence in hot]]

    test.both(
        lambda bank: bank.agent(agent).recall(
            query,
            limit,
            auto_promote=auto_promote,
            kinds=kinds,
            min_relevance=least,
            include_cold=with_cold,
            session=session,
        )[:3],
        expected,
    )


# All memories, and time


def compact(test, agent, session=None) -> None:
    def compacted(bank: MemoryBank, **options: Any) -> Any:
        if session is None:
            return bank.compact(agent, **options)
        return bank.agent(agent).compact(session=session, **options)

    before = test.bank.state_hash()
    planned = compacted(test.bank, dry_run=True)
    assert test.bank.state_hash() == before, "a dry run changed something"
    test.check_state()
    moves = {}
    for memory, to, _ in planned.moves:
        kept = test.model.memories[memory.agent_id, memory.sequence]
        assert kept.tier != PINNED
        assert session in (None, kept.session)
        assert fields(memory) == fields(kept)
        assert kept.temperature != to
        moves[kept.key] = int(to)

    def on_model() -> tuple[int, ...]:
        """As many moves and prunes as the dry run said."""
        test.model.compact(agent, moves, session)
        return planned[:4]

    test.both(lambda bank: compacted(bank)[:4], on_model)
    agents = test.model.issued if agent is None else [agent]
    for memory in test.model.memories.values():
        if memory.retention != ACTIVE or memory.agent_id not in agents:
            continue
        if session not in (None, memory.session):
            continue
        assert memory.temperature == COLD or not memory.is_completed
        if memory.temperature == HOT and memory.tier != PINNED:
            is_kept = memory.kind == "preference" and test.model.tick - memory.idle_since < 7
            assert is_kept or "blocker" in memory.tags
    before = test.bank.state_hash()
    assert compacted(test.bank) == (0, 0, 0, 0, ())
    assert test.bank.state_hash() == before, "a second compaction changed something"


def prune(test, agent) -> None:
    planned = test.bank.prune(agent, dry_run=True)
    test.check_state()
    done = test.both(
        lambda bank: bank.prune(agent), lambda: [test.ids[key] for key in test.model.prune(agent)]
    )
    assert done == planned, "a dry run did not say what would happen"


def sweep(test) -> None:
    test.both(MemoryBank.sweep, test.model.sweep)


def advance(test, delta) -> None:
    tick = max(0, test.model.tick + delta)
    if delta > 0 and not test.in_transaction:
        test.remember_this_tick()
    test.both(lambda bank: bank.advance(tick), lambda: _advance(test, tick))


def _advance(test, tick) -> None:
    """A wall clock goes on from there."""
    test.model.advance(tick)
    test.model.anchor = (tick, test.day)


def pass_at_once(test, delta) -> None:
    """What is due by then is done once, in one step."""
    tick = max(0, test.model.tick + delta)
    if delta > 0 and not test.in_transaction:
        test.remember_this_tick()

    def on_model() -> list[int]:
        before = test.model.tick
        _advance(test, tick)
        _sweep_after(test, before)
        return [before, tick]

    test.both(lambda bank: list(bank.pass_time(tick)[:2]), on_model)


def wall_clock_moves(test, days) -> None:
    """The bank follows it forwards, and not while a transaction is open."""
    before, test.day = test.day, test.day + days
    if test.in_transaction:
        test.bank.follow_clock()
        test.check_state()
        test.day = before  # else the next opening would follow it
        return
    from_tick, from_day = test.model.anchor
    tick = from_tick + max(0, test.day - from_day)
    moves = test.switches.wall and tick > test.model.tick
    if moves:
        test.remember_this_tick()

    def on_model() -> None:
        if moves:
            old = test.model.tick
            test.model.advance(tick)
            _sweep_after(test, old)

    test.both(MemoryBank.follow_clock, on_model)


def _sweep_after(test, before) -> None:
    """What is idle for long fades twice."""
    for _ in range(min(2, test.model.tick - before)):
        test.model.sweep()


def pass_time(test, ticks) -> None:
    """As in a simulation: each tick is swept."""
    for _ in range(ticks):
        advance(test, 1)
        sweep(test)
