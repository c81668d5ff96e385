"""Memory for OASIS's agents. Needs ``pip install 'tiermem[oasis]'``.

``remember(env.agent_graph, bank)``
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from . import MemoryBank, Retention
from .adapting import bank_of, fitted, needed

with needed("tiermem.oasis", "oasis", "camel"):
    from camel.memories import MemoryRecord
    from camel.messages import BaseMessage
    from camel.types import OpenAIBackendRole, RoleType
    from oasis.social_agent import AgentGraph

    from .camel import TierMemory

__all__ = ["SocialMemory", "remember"]

_PAGE = "you see some posts "
"""What OASIS writes before the posts that an agent is shown, as JSON."""
_DONE = re.compile(
    r"Agent \S+ performed (\w+) with args: (.*?) and kwargs: (.*?)and the result is (.*)", re.DOTALL
)
"""What OASIS writes into the memory of an agent that acted by a ``ManualAction``."""
_ACTION = {"oasis": "action"}
"""What says that a record is about an action that no model chose."""
_RESULTS = (OpenAIBackendRole.FUNCTION, OpenAIBackendRole.TOOL)


def remember(
    graph: AgentGraph,
    bank: MemoryBank,
    *,
    window_size: int | None = 6,
    retrieve_limit: int = 5,
    name: str = "user_{}",
) -> dict[int, "SocialMemory"]:
    """Give each agent of a graph the memories of an agent of the bank; by OASIS's id of the agent.

    ``name`` makes the bank's id of OASIS's: ``user_0``, ``user_1``. What an agent remembers already
    stays: in a later run, it knows what it read and did in the former. The other options are those
    of :class:`SocialMemory`. The bank is yours to close.
    """
    memories = {}
    for number, agent in sorted(graph.get_agents()):
        memories[number] = SocialMemory(
            agent.memory.get_context_creator(),
            bank.agent(name.format(number)),
            window_size=window_size,
            retrieve_limit=retrieve_limit,
            agent_id=agent.agent_id,
        )
        agent.memory = memories[number]
    return memories


class SocialMemory(TierMemory):
    """The memories of one agent of a bank, for a ``SocialAgent``; see :func:`remember`.

    Each post and each comment that the agent is shown or finds is a memory, once, and each action
    is one, whether a model or a ``ManualAction`` chose it. Before a model decides, it reads those
    that matter for the posts on its page, ``retrieve_limit`` at most beside the pinned and the hot
    ones, and the newest ``window_size`` records of the conversation.

    The pages themselves, which have counts and times, stay in this process: a page in the bank says
    which posts it had.
    """

    teller = OpenAIBackendRole.USER  # OASIS's CAMEL shows a model the first system message alone
    _page: frozenset[str] = frozenset()
    """The memories of what is on the newest page."""

    def write_records(self, records: list[MemoryRecord]) -> None:
        """Store records, and what the agent read in them, in one commit."""
        with bank_of(self.memories).transaction():
            for record in records:
                posts = _posts(record)
                read = frozenset(self._read(text, about) for text, about in _texts(posts))
                if record.role_at_backend is OpenAIBackendRole.USER:
                    self._page = read
            super().write_records([_said(record) for record in records])

    def clear(self) -> None:
        """End the conversation; what the agent read and did stays."""
        super().clear()
        self._page = frozenset()

    def shown(self) -> set[str]:
        """What is on the newest page."""
        return set(self._page)

    def topic(self, record: MemoryRecord) -> str:
        """The posts and comments of the page, or the message."""
        posts = _posts(record)
        return "\n".join(text for text, _ in _texts(posts)) if posts else super().topic(record)

    def item(self, record: MemoryRecord) -> tuple[object, ...]:
        """What ``add_many`` takes: actions as sentences, and pages without their posts."""
        text: Any
        options: Any
        text, tier, metadata, options = super().item(record)
        posts, did, message = _posts(record), _action(record), options["value"]["camel"]["message"]
        if did is not None:
            return fitted(self.memories, did), tier, metadata, {**options, "kind": "action"}
        if posts:
            text = f"read posts {', '.join(str(post['post_id']) for post in posts)}"
            message["result" if "result" in message else "content"] = text
        if posts or record.role_at_backend in _RESULTS:
            options = {**options, "kind": "observation", "temperature": "cold"}
        return text, tier, metadata, options

    def _read(self, text: str, about: dict[str, int]) -> str:
        """The id of the memory of a post or a comment, which is stored unless it is known."""
        content = fitted(self.memories, text)
        key = f"oasis:{hashlib.sha256(content.encode()).hexdigest()}"
        for memory in reversed(self.memories.history(key)):
            if memory.retention is Retention.ACTIVE:
                return memory.id
        speaker = f"user {about['user']}"
        return self.memories.add(
            content, None, about, key=key, kind="observation", speaker=speaker
        ).id


def _posts(record: MemoryRecord) -> list[dict[str, Any]]:
    """The posts that a record shows: those of a page, or of what a tool found."""
    found = getattr(record.message, "result", None)
    if found is None and record.role_at_backend is OpenAIBackendRole.USER:
        page = str(record.message.content).partition(_PAGE)[2]
        with suppress(ValueError):
            found = {"posts": json.JSONDecoder().raw_decode(page)[0]}
    elif found is None and (done := _done(record)):
        with suppress(ValueError, SyntaxError):
            found = ast.literal_eval(done[4])
    posts = found.get("posts") if isinstance(found, dict) else None
    return [post for post in posts or () if _is_whole(post, "post_id")]


def _is_whole(post: object, number: str) -> bool:
    """Whether it is a post, or a comment, as OASIS has them."""
    return isinstance(post, dict) and {number, "user_id", "content"} <= post.keys()


def _texts(posts: Iterable[dict[str, Any]]) -> Iterable[tuple[str, dict[str, int]]]:
    """What to remember of posts and their comments, each with metadata."""
    for post in posts:
        content, about = str(post["content"]), _about(post)
        says_who = content.startswith(f"User {about['user']} ")  # reposts and quotes do
        yield content if says_who else f"User {about['user']} posted: {content}", about
        for comment in post.get("comments") or ():
            if _is_whole(comment, "comment_id"):
                whose = _about({**comment, "post_id": post["post_id"]})
                text = f"User {whose['user']} commented on the post of user {about['user']}"
                yield f"{text}: {comment['content']}", whose


def _about(post: dict[str, Any]) -> dict[str, int]:
    return {"post": int(post["post_id"]), "user": int(post["user_id"])}


def _said(record: MemoryRecord) -> MemoryRecord:
    """A record; of an action by data, one in which the agent says what it did."""
    done = _done(record)
    if done is None:
        return record
    name, positional, named, _ = done.groups()
    given: dict[str, object] = {}
    with suppress(ValueError, SyntaxError):
        given.update((str(place), each) for place, each in enumerate(ast.literal_eval(positional)))
        given.update(ast.literal_eval(named))
    message = BaseMessage("assistant", RoleType.ASSISTANT, None, _sentence(name, given))
    own = {"role_at_backend": OpenAIBackendRole.ASSISTANT, "extra_info": _ACTION}
    return record.model_copy(update={"message": message, **own})


def _action(record: MemoryRecord) -> str | None:
    """An action as a sentence; None if the record is about none."""
    if record.role_at_backend is not OpenAIBackendRole.ASSISTANT:
        return None
    if record.extra_info == _ACTION:
        return str(record.message.content)
    name = getattr(record.message, "func_name", None)
    return None if name is None else _sentence(name, record.message.args or {})


def _done(record: MemoryRecord) -> re.Match[str] | None:
    if record.role_at_backend is OpenAIBackendRole.SYSTEM:
        return _DONE.match(str(record.message.content))
    return None


def _sentence(name: str, given: Mapping[str, object]) -> str:
    told = ", ".join(f"{key}: {value}" for key, value in given.items())
    return f"I performed {name}{' with ' if told else ''}{told}"
