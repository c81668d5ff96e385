"""All that moves memories between hot, warm, cold and the archive.

:mod:`tiermem.rules` decides; the files beside this one apply the decision to an agent's memories.
"""

from functools import partial
from typing import final

from ..config.settings import Duration, Settings
from ..memory.context import TokenCounter
from ..rules.compaction import parse_rules
from ..storage.state.ledger import Ledger
from .compaction import Compactor
from .hot import Hot
from .lifetime import Starts, expire, expire_of, has_overdue_pin
from .sweep import Sweeper


@final
class Movement:
    """Moves the memories of a bank, as its settings say. The caller holds the transaction."""

    def __init__(self, ledger: Ledger, settings: Settings, count_tokens: TokenCounter) -> None:
        own, ticks = settings.temperature, settings.clock.ticks

        def named(duration: Duration) -> int:
            """A duration of a rule, which may be a setting's name."""
            inactive = own.inactive_preference
            return ticks(inactive if duration == "inactive_preference" else duration)

        rules = parse_rules(own.rules, named)
        self.hot = Hot(ledger, own, count_tokens)
        self.limits = self.hot.limits
        self.window = ticks(own.promote_window)
        self.grace = ticks(settings.retention.grace)
        self.starts = Starts(settings).starts
        self.expire, self.expire_of = partial(expire, ledger), partial(expire_of, ledger)
        self.has_overdue_pin = partial(has_overdue_pin, ledger)
        self.relieve_hot, self.spill = self.hot.relieve, self.hot.spill
        self.relieve_all_hot = self.hot.relieve_all
        self.promotion = self.hot.promotion
        self.too_large_for_hot, self.utilization = self.hot.too_large_for, self.hot.utilization
        compactor = Compactor(ledger, own, rules, count_tokens)
        self.compact, self.would_move = compactor.compact, compactor.would_move
        self.prune = compactor.prune
        self.sweep = Sweeper(ledger, settings, rules).sweep
