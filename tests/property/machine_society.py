"""What agents of the state machine do with each other: tell, retract, trust, share boards."""

from agents.memory.records import memory_id


def id_in(test):
    """The id of a memory, also of one that the bank stores next."""
    blocks = test.bank.engine.state

    def id_of(key) -> str:
        return test.ids.get(key) or memory_id(blocks.block(key[0]).prefix, key[1])

    return id_of


def tell(test, agent, pick, to) -> None:
    """The listener has a copy afterwards, or has had one."""
    if to != agent:
        identifier, sequence = test.choose(agent, pick)
        test.both(
            lambda bank: bank.agent(agent).social.tell(to, identifier).is_new,
            lambda: test.model.tell(agent, sequence, to, id_in(test)),
        )


def tell_and_retract(test, agent, pick, to, text) -> None:
    """A correction follows what was told, also where it was told on; a text is corrected again."""
    tell(test, agent, pick, to)
    chosen = test.choose(agent, pick)
    for each in [None] if text is None else [test.text(text), test.text(text), "not even that"]:
        _retract(test, agent, chosen, each)


def _retract(test, agent, chosen, text) -> None:
    identifier, sequence = chosen
    test.both(
        lambda bank: [
            (told.listener, told.is_new)
            for told in bank.agent(agent).social.retract(identifier, text)
        ],
        lambda: test.model.retract(agent, sequence, text, id_in(test)),
    )


def trust(test, agent, to, value) -> None:
    """It says nothing where the settings do not ask for it, and is kept."""
    if to != agent:
        test.both(lambda bank: bank.agent(agent).social.trust(to, value), lambda: None)
        assert test.bank.agent(agent).social.trust_of(to) == value


def join(test, agent, group) -> None:
    def call(bank) -> None:
        bank.group(group, [agent])

    test.both(call, lambda: test.model.join(group, agent))


def leave(test, agent, group) -> None:
    test.both(
        lambda bank: bank.agent(agent).social.leave(group), lambda: test.model.leave(group, agent)
    )


def post(test, agent, group, text, tier) -> None:
    text = test.text(text)
    test.both(
        lambda bank: bank.agent(agent).social.post(group, text, tier[1]),
        lambda: test.model.post(group, agent, text, int(tier[0])),
    )


def search_groups(test, agent, query, limit, tokens) -> None:
    """What a member finds, on boards as well; a stranger finds its own."""
    test.both(
        lambda bank: bank.agent(agent).search(
            query, limit, context_tokens=tokens, include_groups=True
        ),
        lambda: test.model.search_groups(agent, query, limit, tokens),
    )
