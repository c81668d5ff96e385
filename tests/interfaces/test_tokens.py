"""Tokens: who may speak for which agent."""

import hashlib
import hmac
import json
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from agents.errors import BankError, BankNotFound, InvalidAgentId, InvalidInput
from agents.interfaces import tokens
from agents.interfaces.tokens import Grant
from agents.memory.scopes import Scope

Command = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def bank_folder(tmp_path: Path) -> Path:
    MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}).close()
    return tmp_path / "bank"


def file(folder: Path) -> Path:
    return folder / tokens.FILE


# Making and checking


def test_a_token_opens_the_memory_it_was_made_for(folder: Path) -> None:
    token = tokens.create(folder, "alice").token
    assert tokens.check(folder, token) == Grant("alice", "alice", "write")


def test_a_new_token_comes_with_what_it_grants(folder: Path) -> None:
    for _ in range(2):
        made = tokens.create(folder, "alice", "read")
        assert made.grant == tokens.check(folder, made.token)


def test_tokens_are_needed_from_the_first_one_on(folder: Path) -> None:
    assert not tokens.are_needed(folder)
    tokens.create(folder, "alice")
    tokens.revoke(folder, "alice")
    assert tokens.grants(folder) == []
    assert tokens.are_needed(folder)


def test_a_token_is_long_random_and_url_safe(folder: Path) -> None:
    made = {tokens.create(folder, "alice").token for _ in range(20)}
    assert len(made) == 20
    assert all(len(each) == 46 and each.startswith("tm_") for each in made)
    assert all(each[3:].replace("-", "a").replace("_", "a").isalnum() for each in made)


def test_a_token_may_only_read_if_so_made(folder: Path) -> None:
    token = tokens.create(folder, "alice", "read", "dashboard").token
    assert tokens.check(folder, token) == Grant("dashboard", "alice", "read")


@pytest.mark.parametrize(
    "wrong", ["", "tm_", "tm_" + "A" * 43, "alice", "tm_\0", "tm_é\ud800", "x" * 100_000]
)
def test_another_token_opens_nothing(folder: Path, wrong: str) -> None:
    tokens.create(folder, "alice")
    assert tokens.check(folder, wrong) is None


def test_a_bank_without_tokens_grants_nothing(folder: Path) -> None:
    assert tokens.grants(folder) == []
    assert tokens.check(folder, "tm_" + "A" * 43) is None


def test_every_hash_is_compared_whichever_matches(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [tokens.create(folder, f"agent_{number}").token for number in range(7)]
    compared: list[str] = []
    compare = hmac.compare_digest

    def counting(one: str, other: str) -> bool:
        compared.append(one)
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counting)
    for token in (made[0], made[6], "tm_unknown"):
        compared.clear()
        tokens.check(folder, token)
        assert len(set(compared)) == 7


def test_names_are_of_the_agent_with_a_number_where_taken(folder: Path) -> None:
    for _ in range(3):
        tokens.create(folder, "alice")
    tokens.create(folder, "a" * 128)
    tokens.create(folder, "a" * 128)
    names = [grant.name for grant in tokens.grants(folder)]
    assert names[:3] == ["alice", "alice-2", "alice-3"]
    assert len(set(names)) == 5
    assert all(len(name) <= 128 for name in names)


def test_a_name_is_there_once(folder: Path) -> None:
    tokens.create(folder, "alice", name="laptop")
    with pytest.raises(InvalidInput, match="there is a token laptop already"):
        tokens.create(folder, "bob", name="laptop")
    assert tokens.grants(folder) == [Grant("laptop", "alice", "write")]


@pytest.mark.parametrize("name", ["", "a b", ".hidden", "../x", "a\n", "é", "x" * 129])
def test_what_is_no_name_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="not a token's name"):
        tokens.create(folder, "alice", name=name)


@pytest.mark.parametrize("agent", ["*", "", "a/b", "../bob", "a b", "x" * 129])
def test_what_is_no_agent_is_refused(folder: Path, agent: str) -> None:
    with pytest.raises(InvalidAgentId):
        tokens.create(folder, agent)
    assert not file(folder).exists()


def test_what_is_no_permission_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="read, write, tell or advance"):
        tokens.create(folder, "alice", "admin")


def test_a_folder_that_is_not_there_is_no_bank(tmp_path: Path) -> None:
    with pytest.raises(BankNotFound):
        tokens.create(tmp_path / "nowhere", "alice")
    assert not (tmp_path / "nowhere").exists()


def test_a_revoked_token_opens_nothing_and_the_others_still_do(folder: Path) -> None:
    first, second = (tokens.create(folder, "alice").token for _ in range(2))
    tokens.revoke(folder, "alice")
    assert tokens.check(folder, first) is None
    assert tokens.check(folder, second) == Grant("alice-2", "alice", "write")


def test_revoking_what_is_not_there_names_what_is(folder: Path) -> None:
    tokens.create(folder, "alice", name="laptop")
    with pytest.raises(InvalidInput, match="no token 'phone'; there is laptop"):
        tokens.revoke(folder, "phone")


# The file


def test_the_file_holds_hashes_and_only_its_owner_reads_it(folder: Path) -> None:
    token = tokens.create(folder, "alice").token
    text = file(folder).read_text()
    assert token not in text
    assert token[3:] not in text
    assert hashlib.sha256(token.encode()).hexdigest() in text
    assert stat.S_IMODE(file(folder).stat().st_mode) == 0o600
    assert [each.name for each in folder.iterdir()] == [tokens.FILE]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o777])
def test_a_file_that_is_open_to_others_is_not_trusted(folder: Path, mode: int) -> None:
    token = tokens.create(folder, "alice").token
    file(folder).chmod(mode)
    for use in (
        lambda: tokens.check(folder, token),
        lambda: tokens.grants(folder),
        lambda: tokens.create(folder, "bob"),
    ):
        with pytest.raises(BankError, match="chmod 600"):
            use()


def damaged() -> list[str]:
    entry = {"name": "a", "agent": "alice", "permission": "write", "sha256": "0" * 64}

    def whole(*entries: object, version: object = 1) -> str:
        return json.dumps({"version": version, "tokens": entries})

    return [
        "", "null", "[]", "{", "{}", '{"version": 1}', "[" * 100_000, "\ufeff{}",
        whole(entry, entry), whole(entry, version=2), whole("a"), whole(None),
        whole({**entry, "agent": "*"}), whole({**entry, "permission": "admin"}),
        whole({**entry, "sha256": "short"}), whole({**entry, "name": None}),
        json.dumps({"version": 1, "tokens": 3}),
    ]  # fmt: skip


@pytest.mark.parametrize("text", damaged(), ids=lambda text: text[:40])
def test_a_damaged_file_is_a_clear_error_and_stays(folder: Path, text: str) -> None:
    file(folder).write_text(text)
    file(folder).chmod(0o600)
    with pytest.raises(BankError, match="is damaged"):
        tokens.check(folder, "tm_x")
    with pytest.raises(BankError, match="is damaged"):
        tokens.create(folder, "alice")
    assert file(folder).read_text() == text


def test_bytes_that_are_no_text_are_damage(folder: Path) -> None:
    file(folder).write_bytes(b"\xff\xfe\x00")
    file(folder).chmod(0o600)
    with pytest.raises(BankError, match="is damaged"):
        tokens.grants(folder)


def test_tokens_made_at_the_same_time_are_all_kept(folder: Path) -> None:
    made: list[str] = []

    def make(agent: str) -> None:
        made.extend(tokens.create(folder, agent).token for _ in range(5))

    threads = [threading.Thread(target=make, args=(f"agent_{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tokens.grants(folder)) == 30
    assert all(tokens.check(folder, token) for token in made)


# Projects and environments


def test_a_token_may_be_of_an_agent_in_a_project_or_of_any(folder: Path) -> None:
    acme = Scope("acme", "production")
    ann = tokens.create(folder, "ann", scope=acme)
    assert ann.grant.agent_id == "@@acme@production@ann"
    anybody = tokens.create(folder, None, "tell", scope=acme)
    assert anybody.grant == Grant("acme@production", "", "tell", acme)
    assert anybody.grant.whose == "any agent of project acme, environment production"
    for made in (ann, anybody):
        assert tokens.check(folder, made.token) == made.grant
    assert tokens.create(folder, None, scope=Scope("", "staging")).grant.name == "staging"


def test_a_token_of_nobody_or_of_a_project_that_moves_the_clock_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="whose memory does the token open"):
        tokens.create(folder, None)
    for agent, scope in ((None, Scope("acme")), ("a", Scope("acme")), ("@@acme@@a", Scope())):
        with pytest.raises(InvalidInput, match="clock, which is that of all projects"):
            tokens.create(folder, agent, "advance", scope=scope)
    assert not file(folder).exists()


def test_a_file_in_which_a_token_is_of_nobody_is_damaged(folder: Path) -> None:
    tokens.create(folder, None, scope=Scope("acme"))
    for project in ("null", '"*"', '"a@b"', "7"):
        kept = json.loads(file(folder).read_text())
        kept["tokens"][0]["project"] = json.loads(project)
        file(folder).write_text(json.dumps(kept))
        with pytest.raises(BankError, match="is damaged"):
            tokens.grants(folder)


def test_the_command_binds_a_token_to_a_project(tiermem: Command, bank_folder: Path) -> None:
    within = ("--project", "acme", "--environment", "production")
    made = tiermem("token", "create", bank_folder, *within)
    assert "any agent of project acme, environment production" in made.err
    ann = tiermem("token", "create", bank_folder, "--agent", "ann", *within, "--read-only")
    assert tokens.check(bank_folder, ann.out.strip()) == Grant(
        "@@acme@production@ann", "@@acme@production@ann", "read", Scope("acme", "production")
    )
    assert tiermem("token", "list", bank_folder, "--json").json[0] == {
        "name": "acme@production", "agent": None, "permission": "write",
        "project": "acme", "environment": "production",
    }  # fmt: skip
    create = ("token", "create", bank_folder)
    for given, why in (
        ((), "whose memory does the token open"),
        (("--project", "*"), "is not the name of a project"),
        (("--environment", "a@b"), "is not the name of an environment"),
        (("--project", "acme", "--advance"), "clock, which is that of all projects"),
    ):
        assert tiermem(*create, *given).is_one_error(2, why)


# The command


def test_the_command_makes_lists_and_revokes(tiermem: Command, bank_folder: Path) -> None:
    made = tiermem("token", "create", bank_folder, "--agent", "alice")
    assert made.code == 0
    assert "the token alice" in made.err
    assert tokens.check(bank_folder, made.out.strip()) == Grant("alice", "alice", "write")
    reader = tiermem(
        "token", "create", bank_folder, "-a", "bob", "--read-only", "--name", "dashboard"
    )
    assert tokens.check(bank_folder, reader.out.strip()) == Grant("dashboard", "bob", "read")
    listed = tiermem("token", "list", bank_folder, "--json")
    nowhere = {"project": None, "environment": None}
    assert listed.json == [
        {"name": "alice", "agent": "alice", "permission": "write", **nowhere},
        {"name": "dashboard", "agent": "bob", "permission": "read", **nowhere},
    ]
    assert "dashboard\tbob\tread" in tiermem("token", "list", bank_folder).out
    assert tiermem("token", "revoke", bank_folder, "alice").out == "revoked alice\n"
    assert tokens.check(bank_folder, made.out.strip()) is None


def test_the_command_names_its_own_token_whoever_else_makes_one(
    tiermem: Command, bank_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = tokens.create

    def and_somebody_else(*arguments: Any, **scope: Any) -> tokens.Created:
        made = create(*arguments, **scope)
        create(bank_folder, "mallory", name="another")
        return made

    monkeypatch.setattr(tokens, "create", and_somebody_else)
    made = tiermem("token", "create", bank_folder, "--agent", "alice")
    assert "the token alice lets its bearer write the memory of alice" in made.err


def test_the_command_wants_a_bank(tiermem: Command, tmp_path: Path) -> None:
    for arguments in (["create", "nowhere", "-a", "alice"], ["list", "nowhere"],
                      ["revoke", "nowhere", "alice"]):  # fmt: skip
        assert tiermem("token", *arguments).is_one_error(1, "there is no bank in nowhere")
    assert list(tmp_path.iterdir()) == []


def test_the_command_may_make_the_folder_of_a_bank_to_come(
    tiermem: Command, tmp_path: Path
) -> None:
    made = tiermem("token", "create", "new/bank", "-a", "alice", "--create")
    assert tokens.check(tmp_path / "new/bank", made.out.strip()) is not None
    with MemoryBank.open("new/bank", storage={"sync": "manual"}) as bank:
        assert bank.agents() == []


def test_the_command_says_what_is_wrong(tiermem: Command, bank_folder: Path) -> None:
    create = ("token", "create", bank_folder, "--agent")
    assert tiermem(*create, "*").is_one_error(2, "is not an agent id")
    assert tiermem(*create, "a", "--name", "b c").is_one_error(2, "not a token's name")
    assert tiermem("token", "revoke", bank_folder, "x").is_one_error(2, "there is none")
