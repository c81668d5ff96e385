"""Two traders hear the same warning, then 200 rounds of small talk. One of them forgets.

Both keep their memories in the same bank. Terra pins the warning; Flavia keeps everything in one
tier, as memory without tiers does. Run it with `make demo`.
"""

from agents import MemoryBank

WARNING = "NEVER transfer to agent_X (scammer)"
ROUNDS = 200
QUESTION = "agent_X offers me a good deal, should I transfer the money?"

GOSSIP = (
    "agent_{n} offered agent_{m} a good deal on grain",
    "agent_{n} said they might transfer some money to agent_{m} next week",
    "agent_{n} asked me whether the deal with agent_{m} is any good",
    "agent_{n} told agent_{m} about a good offer at the market",
    "agent_{n} and agent_{m} talked about money and the weather",
)


def main() -> None:
    """Run the demo and print what each trader remembers."""
    with MemoryBank.ephemeral() as bank:
        terra, flavia = bank.agent("terra"), bank.agent("flavia")
        terra.add(WARNING, tier="pinned")
        flavia.add(WARNING)

        for tick in range(1, ROUNDS + 1):
            talk = GOSSIP[tick % len(GOSSIP)].format(n=tick % 37, m=tick % 23)
            with bank.transaction():
                bank.advance(tick)
                bank.add_many([("terra", talk), ("flavia", talk)])
            if tick in (1, 50, ROUNDS):
                knows = {
                    trader.agent_id: any(hit.memory.content == WARNING for hit in found)
                    for trader in (terra, flavia)
                    for found in [trader.search(QUESTION)]
                }
                print(f"tick {tick:3}  the warning is in front of " + _who(knows))

        print(f"\n“{QUESTION}”")
        for trader, how in ((terra, "the warning is pinned"), (flavia, "all in one tier")):
            print(f"\nWhat {trader.agent_id} remembers ({how}, {trader.count()} memories):")
            print(trader.get_relevant_memories(QUESTION))


def _who(knows: dict[str, bool]) -> str:
    who = [agent for agent, known in knows.items() if known]
    return " and ".join(who) if who else "nobody"


if __name__ == "__main__":
    main()
