"""What agents can do with their memory, as tools for models: all of it comes from one table.

>>> from tiermem import MemoryBank, tools
>>> with MemoryBank.ephemeral() as bank:
...     alice = bank.agent("alice")
...     done = tools.call(alice, "store_memory", {"content": "The well is in the north"})
...     wrong = tools.call(alice, "pin_memory", {"memory_id": "42"})
>>> done.result["content"]
'The well is in the north'
>>> wrong.to_dict()["error"]["type"]
'MemoryNotFound'
"""

from .calling import Failure, Outcome, anthropic_schemas, call, openai_schemas
from .operations import ERROR, OPERATIONS, Operation, Route

__all__ = [
    "ERROR",
    "OPERATIONS",
    "Failure",
    "Operation",
    "Outcome",
    "Route",
    "anthropic_schemas",
    "call",
    "openai_schemas",
]
