"""A plugin of pytest: TierMem's session takes the place of the SDK's ``SQLiteSession``."""

import atexit
import tempfile
from pathlib import Path
from typing import Any

import agents
import agents.memory
import agents.memory.sqlite_session
from agents import SessionSettings
from tiermem import MemoryBank
from tiermem.openai_agents import TierSession

_BANKS: dict[Path, MemoryBank] = {}
_FOLDER = tempfile.TemporaryDirectory()
atexit.register(_FOLDER.cleanup)


class InSqlite(TierSession):
    """Takes the arguments of ``SQLiteSession``: a file stands for a bank."""

    def __init__(
        self, session_id: str, db_path: Any = ":memory:", *_: Any, session_settings: Any = None
    ) -> None:
        if str(db_path) == ":memory:":
            bank = MemoryBank.ephemeral()
        else:
            file = Path(db_path).resolve()
            if file not in _BANKS:
                folder = Path(_FOLDER.name, str(len(_BANKS)))
                _BANKS[file] = MemoryBank.open(folder, storage={"sync": "manual"})
            bank = _BANKS[file]
        if isinstance(session_settings, dict):
            session_settings = SessionSettings(**session_settings)
        settings = session_settings or SessionSettings()
        super().__init__(bank.agent("agent"), session_id, session_settings=settings)

    def close(self) -> None:
        """The bank of a file stays open for the next session."""


for module in (agents, agents.memory, agents.memory.sqlite_session):
    module.SQLiteSession = InSqlite
