"""Gives every model of Mesa memories, so that Mesa's own tests run with them."""

import mesa

from tiermem.mesa import Memories

_plain = mesa.Model.__init__


def _with_memories(self: mesa.Model, *arguments: object, **options: object) -> None:
    _plain(self, *arguments, **options)
    self.memories = Memories(self)


mesa.Model.__init__ = _with_memories
