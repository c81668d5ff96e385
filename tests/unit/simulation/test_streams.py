"""Randomness: one seed, and everything else derives from it."""

import copy
from random import Random

import pytest

from agents.errors import InvalidInput
from agents.simulation.tick.streams import Streams

AGENTS = ["alice", "bob", "carol", "dora", "emil"]


def begun(seed: int = 1, tick: int = 1, agents: list[str] = AGENTS) -> Streams:
    streams = Streams(seed, agents)
    streams.begin(tick)
    return streams


def drawn(stream: Random) -> list[float]:
    return [stream.random() for _ in range(4)]


def test_the_same_seed_and_tick_give_the_same_numbers() -> None:
    one, other = begun(), begun()
    assert drawn(one.world) == drawn(other.world)
    assert drawn(one.agents["bob"]) == drawn(other.agents["bob"])
    assert one.order() == other.order()


def test_another_seed_or_tick_gives_others() -> None:
    numbers = [drawn(begun(seed, tick).world) for seed in (1, 2) for tick in (1, 2)]
    assert len({tuple(each) for each in numbers}) == 4


def test_seed_and_tick_are_not_mixed_up() -> None:
    assert drawn(begun(1, 12).world) != drawn(begun(11, 2).world)


def test_every_agent_and_the_world_have_streams_of_their_own() -> None:
    streams = begun()
    numbers = [drawn(stream) for stream in (streams.world, *streams.agents.values())]
    assert len({tuple(each) for each in numbers}) == len(AGENTS) + 1


def test_an_agent_called_world_has_a_stream_of_its_own() -> None:
    streams = begun(agents=["world", "order"])
    assert drawn(streams.agents["world"]) != drawn(streams.world)


def test_what_one_draws_changes_nothing_for_the_others() -> None:
    one, other = begun(), begun()
    drawn(one.agents["alice"])
    drawn(one.world)
    assert drawn(one.agents["bob"]) == drawn(other.agents["bob"])
    assert one.order() == other.order()


def test_another_agent_more_changes_nothing_for_the_others() -> None:
    more = begun(agents=[*AGENTS, "fred"])
    assert drawn(more.agents["bob"]) == drawn(begun().agents["bob"])


def test_what_was_drawn_in_a_tick_changes_nothing_in_the_next() -> None:
    one, other = begun(), Streams(1, AGENTS)
    drawn(one.world)
    one.world.gauss(0, 1)  # keeps half of a pair for later
    for streams in (one, other):
        streams.begin(2)
    assert one.world.gauss(0, 1) == other.world.gauss(0, 1)
    assert drawn(one.world) == drawn(other.world)


def test_all_ways_to_draw_give_the_ticks_own_numbers_first() -> None:
    draws = [
        lambda rng: rng.random(),
        lambda rng: rng.getrandbits(70),
        lambda rng: rng.randbytes(9),
        lambda rng: rng.randrange(10**9),
        lambda rng: rng.choice(range(10**9)),
        lambda rng: rng.sample(range(1000), 5),
        lambda rng: rng.shuffle(numbers := list(range(50))) or numbers,
        lambda rng: rng.gauss(0, 1),
        lambda rng: rng.expovariate(1.0),
        lambda rng: rng.choices(range(1000), k=5),
    ]
    for draw in draws:
        used = begun(1, 1)
        drawn(used.world)
        used.begin(2)
        assert draw(used.world) == draw(begun(1, 2).world)
        assert draw(begun(1, 3).world) != draw(begun(1, 2).world)


def test_the_order_holds_everyone_once_and_changes_from_tick_to_tick() -> None:
    orders = [begun(tick=tick).order() for tick in range(1, 30)]
    assert all(sorted(order) == AGENTS for order in orders)
    assert len({tuple(order) for order in orders}) > 15
    assert {order[0] for order in orders} == set(AGENTS)


def test_the_state_of_a_stream_is_the_ticks_before_anything_is_drawn() -> None:
    used = begun(1, 1)
    drawn(used.world)
    used.begin(2)
    assert used.world.getstate() == begun(1, 2).world.getstate()


def test_a_stream_that_a_world_seeds_itself_stays_seeded() -> None:
    stream = begun().world
    stream.seed(42)
    assert stream.random() == Random(42).random()


def test_a_streams_state_can_be_set() -> None:
    stream = begun().world
    stream.setstate(Random(42).getstate())
    assert stream.random() == Random(42).random()


def test_a_stream_can_be_copied() -> None:
    stream = begun().world
    assert copy.copy(stream).random() == stream.random()
    assert copy.deepcopy(stream).random() == stream.random()


@pytest.mark.parametrize("seed", [0, 2**31, 2**63 - 1])
def test_any_seed_is_fine(seed: int) -> None:
    assert len(set(drawn(begun(seed).world))) == 4


def named(streams: Streams, name: str, agent: str | None = None) -> list[float]:
    return drawn(streams.world.stream(name, agent))


def test_a_named_stream_depends_on_seed_tick_name_and_agent_alone() -> None:
    numbers = named(begun(), "offers", "alice")
    others = begun()
    drawn(others.world)
    named(others, "weather")
    named(others, "offers", "bob")
    assert named(others, "offers", "alice") == numbers
    apart = [
        named(begun(2), "offers", "alice"),
        named(begun(1, 2), "offers", "alice"),
        named(begun(), "offers", "bob"),
        named(begun(), "gossip", "alice"),
        named(begun(), "offers"),
        drawn(begun().agents["alice"]),
        drawn(begun().world),
    ]
    assert len({tuple(each) for each in [numbers, *apart]}) == 8


def test_named_streams_shift_neither_the_world_nor_the_agents() -> None:
    one, other = begun(), begun()
    named(one, "weather")
    assert drawn(one.world) == drawn(other.world)
    assert drawn(one.agents["bob"]) == drawn(other.agents["bob"])


def test_a_named_stream_goes_on_within_a_tick_and_begins_anew_in_the_next() -> None:
    streams, kept = begun(), begun()
    own = kept.world.stream("weather")
    first = named(streams, "weather")
    assert drawn(own) == first
    assert drawn(own) == named(streams, "weather") != first
    kept.begin(2)
    assert drawn(own) == named(begun(1, 2), "weather")


def test_a_named_stream_draws_all_that_a_generator_draws() -> None:
    def all_draws() -> list[object]:
        own = begun().world.stream("offers", "alice")
        things = list(range(10))
        own.shuffle(things)
        return [
            things, own.choice("abc"), own.sample(range(9), 4), own.gauss(), own.randint(1, 6),
            own.getrandbits(200), own.randbytes(5), own.getrandbits(0), own.triangular(),
        ]  # fmt: skip

    assert all_draws() == all_draws()
    many = begun().world.stream("dice")
    faces = [many.randrange(6) for _ in range(6000)]
    assert all(900 < faces.count(face) < 1100 for face in range(6))
    assert 0.48 < sum(many.random() for _ in range(6000)) / 6000 < 0.52


def test_a_named_stream_can_be_copied_seeded_and_set_back() -> None:
    own = begun().world.stream("weather")
    own.gauss()
    state, twin = own.getstate(), copy.deepcopy(own)
    numbers = drawn(own)
    assert drawn(twin) == numbers
    own.setstate(state)
    assert drawn(own) == numbers
    own.seed(5)
    seeded = drawn(own)
    twin.seed(5)
    assert drawn(twin) == seeded


@pytest.mark.parametrize("name", ["", "a\0b", 5])
def test_a_stream_needs_a_name(name: str) -> None:
    with pytest.raises(InvalidInput, match="not a name of a stream"):
        begun().world.stream(name)
