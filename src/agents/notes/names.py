"""Which paths and which texts a note may have."""

from ..errors import InvalidAgentId, NoteRefused
from ..memory.context import one_line
from ..memory.requests import check_agent_id
from ..storage.note import is_transcript

__all__ = [
    "MOST_BYTES",
    "MOST_CHARACTERS",
    "agent_of_folder",
    "check_text",
    "decoded",
    "fault_of_name",
    "fault_of_path",
    "folder_of_agent",
    "is_transcript",
    "leads_through_note",
]

MOST_BYTES = 1 << 20
"""The largest size of a note."""
MOST_CHARACTERS = 512
"""The longest path of a note."""

_MOST_NAME_CHARACTERS = 128
_MOST_NAME_BYTES = 200  # a file system takes 255; a staged file's name has 39 more


def folder_of_agent(agent_id: str) -> str:
    """The name of an agent's folder. Names of two agents differ by more than case.

    >>> folder_of_agent("alice"), folder_of_agent("Alice"), folder_of_agent("ALICE")
    ('alice', 'Alice%1', 'ALICE%1f')
    """
    capitals = sum(1 << place for place, letter in enumerate(agent_id) if letter.isupper())
    # Some file systems ignore a dot at the end.
    return f"{agent_id}%{capitals:x}" if capitals or agent_id.endswith(".") else agent_id


def agent_of_folder(name: str) -> str | None:
    """The agent whose folder has this name; None if no agent's folder has it."""
    try:
        agent_id = check_agent_id(name.partition("%")[0])
    except InvalidAgentId:
        return None
    return agent_id if folder_of_agent(agent_id) == name else None


def fault_of_path(path: str) -> str | None:
    """Why no note can have this path, whatever is on disk; None if one can."""
    if len(path) > MOST_CHARACTERS:
        return f"has over {MOST_CHARACTERS} characters"
    if path.startswith("/"):
        return "is absolute"
    faults = (fault_of_name(name) for name in path.split("/"))
    fault = next((fault for fault in faults if fault), None)
    suffix = ".jsonl" if is_transcript(path) else ".md"
    if fault is None and not path.endswith(suffix):
        return f"doesn't end in {suffix}"
    return fault


def leads_through_note(path: str) -> bool:
    """Whether a folder of a path has the name of a note, which could then not be written."""
    return any(name.lower().endswith((".md", ".jsonl")) for name in path.split("/")[:-1])


def fault_of_name(name: str) -> str | None:
    """Why no file or folder in a note's path can have this name; None if one can."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "is not valid Unicode"
    if not name:
        return "has an empty part"
    if name.startswith("."):
        return f"has a part that starts with a dot, {name!r:.80}"
    if "\\" in name:
        return "has a backslash"
    if one_line(name) != name:
        return "has a character that is not shown: a control, a line end or one that reorders text"
    if len(name) > _MOST_NAME_CHARACTERS or size > _MOST_NAME_BYTES:
        return f"has a part over {_MOST_NAME_CHARACTERS} characters or {_MOST_NAME_BYTES} bytes"
    return None


def check_text(path: str, text: object) -> bytes:
    """The bytes of the text, or :class:`NoteRefused` if no note may have it."""
    if not isinstance(text, str):
        raise NoteRefused(f"{path!r:.80} can't be written: {text!r:.80} is not text")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise NoteRefused(
            f"{path!r:.80} can't be written: character {error.start} is a lone surrogate, for "
            "which UTF-8 has no bytes"
        ) from None
    _check_text(path, data, "written")
    return data


def decoded(path: str, data: bytes) -> str:
    """The text of a note's bytes, or :class:`NoteRefused`."""
    _check_text(path, data, "read")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NoteRefused(
            f"{path!r:.80} can't be read: byte {error.start} is not UTF-8", hint="save it as UTF-8"
        ) from None


def _check_text(path: str, data: bytes, done: str) -> None:
    if len(data) > MOST_BYTES:
        fault, hint = f"it is over {MOST_BYTES} bytes", "cut it into several"
    elif b"\0" in data:
        fault, hint = f"byte {data.index(0)} is NUL, so it is not text", ""
    else:
        return
    raise NoteRefused(f"{path!r:.80} can't be {done}: {fault}", hint=hint)
