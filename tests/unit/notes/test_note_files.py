"""Notes on disk: what is a note, what is refused, and that nothing else is ever touched."""

import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.notes import files
from agents.notes.files import MOST_BYTES, NoteFiles, NoteRefused

SECRET = "the secret of another"


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A bank's folder with two agents and secrets all around the notes of one of them."""
    notes = tmp_path / "bank" / "notes"
    (notes / "alice" / "memory").mkdir(parents=True)
    (notes / "alice" / "MEMORY.md").write_text("alice's own\n")
    (notes / "alice" / "memory" / "day.md").write_text("alice's day\n")
    (notes / "bob" / "memory").mkdir(parents=True)
    for secret in (
        "secret.md",
        "bank/secret.md",
        "bank/MEMORY.md",
        "bank/notes/secret.md",
        "bank/notes/MEMORY.md",
        "bank/notes/bob/MEMORY.md",
        "bank/notes/bob/memory/day.md",
        "bank/notes/alice/secret.md",
        "bank/notes/alice/memory.md",
        "bank/notes/alice/memory/secret.txt",
        "bank/notes/alice/memory/.secret.md",
    ):
        (tmp_path / secret).write_text(SECRET)
    (notes / "alice" / "memory" / ".deep").mkdir()
    (notes / "alice" / "memory" / ".deep" / "secret.md").write_text(SECRET)
    return tmp_path


@pytest.fixture
def alice(world: Path) -> NoteFiles:
    return NoteFiles(world / "bank" / "notes" / "alice")


def tree(folder: Path) -> dict[str, bytes | str | None]:
    """Everything below a folder: the bytes of files, the targets of links."""
    return {
        str(path.relative_to(folder)): (
            os.readlink(path)
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else None
        )
        for path in sorted(folder.rglob("*"))
    }


def assert_refused(
    call: Callable[..., object], *arguments: object, match: str | None = None
) -> str:
    with pytest.raises(NoteRefused, match=match) as refusal:
        call(*arguments)
    assert SECRET not in str(refusal.value)
    return str(refusal.value)


# Paths

HOSTILE: dict[str, Any] = {
    "nothing": None,
    "number": 7,
    "bytes": b"MEMORY.md",
    "path object": Path("MEMORY.md"),
    "list": ["memory", "day.md"],
    "empty": "",
    "blank": " ",
    "slash": "/",
    "dot": ".",
    "two dots": "..",
    "three dots": "...",
    "absolute": "{world}/secret.md",
    "absolute to bob": "{world}/bank/notes/bob/MEMORY.md",
    "absolute to own": "{world}/bank/notes/alice/MEMORY.md",
    "two slashes": "//secret.md",
    "passwd": "/etc/passwd",
    "passwd relative": "../../../../../../../../etc/passwd",
    "up": "../secret.md",
    "up to bob": "../bob/MEMORY.md",
    "up to bob's day": "../bob/memory/day.md",
    "up and back": "../alice/MEMORY.md",
    "up from memory": "memory/../../bob/MEMORY.md",
    "up inside": "memory/../secret.md",
    "up to own": "memory/../MEMORY.md",
    "up three": "memory/../../../../secret.md",
    "up at the end": "memory/..",
    "up with suffix": "memory/...md",
    "up as a folder": "memory/day.md/../../secret.md",
    "dot before": "./MEMORY.md",
    "dot inside": "memory/./day.md",
    "dot at the end": "MEMORY.md/.",
    "slash at the end": "MEMORY.md/",
    "slash at the end of a day": "memory/day.md/",
    "folder": "memory",
    "folder with slash": "memory/",
    "empty part": "memory//day.md",
    "backslash": "memory\\day.md",
    "backslash up": "..\\bob\\MEMORY.md",
    "mixed slashes": "memory/..\\..\\secret.md",
    "drive": "C:\\secret.md",
    "drive with slash": "C:/secret.md",
    "share": "\\\\server\\secret.md",
    "nul": "MEMORY.md\0",
    "nul before suffix": "../secret.md\0.md",
    "nul inside": "memory/day\0.md",
    "newline": "memory/day\n.md",
    "newline at the end": "MEMORY.md\n",
    "carriage return": "memory/day\r.md",
    "escape": "memory/\x1b[2Jday.md",
    "delete": "memory/day\x7f.md",
    "next line": "memory/day\x85.md",
    "line separator": "memory/day\u2028.md",
    "reordered": "memory/\u202edm.yad.md",
    "lone surrogate": "memory/\udc80.md",
    "surrogate of a byte": "memory/\udcff/../secret.md",
    "hidden": "memory/.secret.md",
    "hidden folder": ".memory/day.md",
    "hidden main": ".MEMORY.md",
    "staged": ".MEMORY.md.new",
    "staged day": "memory/.day.md.new",
    "only a suffix": "memory/.md",
    "no suffix": "memory/secret",
    "other suffix": "memory/secret.txt",
    "other case": "memory.md",
    "suffix in capitals": "memory/DAY.MD",
    "suffix before more": "memory/day.md.txt",
    "blank at the end": "MEMORY.md ",
    "blank in front": " MEMORY.md",
    "other file": "secret.md",
    "other folder": "Memory/day.md",
    "hidden folder below": "memory/.deep/secret.md",
    "main in memory's place": "MEMORY.md/day.md",
    "long name": "memory/" + "x" * 126 + ".md",
    "many bytes": "memory/" + "語" * 90 + ".md",
    "long path": "memory/" + "x/" * 5_000 + "day.md",
    "home": "~/secret.md",
    "variable": "$HOME/secret.md",
    "address": "file:///etc/passwd",
    "percent": "%2e%2e/secret.md",
    "wide dots": "\uff0e\uff0e/secret.md",
    "wide slash": "..\uff0fsecret.md",
    "extra that is none": "extra/secret.md",
    "extra folder that is none": "extra/docs/secret.md",
    "extra alone": "extra",
    "extra up": "extra/../secret.md",
    "pattern": "memory/*",
    "process": "/proc/self/environ",
    "standard input": "/dev/stdin",
}


def test_there_are_enough_hostile_paths() -> None:
    assert len(HOSTILE) >= 60


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_path_reaches_nothing(world: Path, alice: NoteFiles, name: str) -> None:
    path = HOSTILE[name]
    if isinstance(path, str):
        path = path.replace("{world}", str(world))
    before = tree(world)
    message = assert_refused(alice.check, path)
    assert "is not a note's path: it " in message
    assert "a note is MEMORY.md, memory/NAME.md or" in message
    assert message.isprintable()
    assert_refused(alice.read, path)
    assert_refused(alice.read_staged, path)
    assert_refused(alice.stage, path, "overwritten")
    assert_refused(alice.publish, path)
    assert_refused(alice.discard, path)
    assert_refused(alice.set_aside, path, "x.md")
    assert tree(world) == before


@pytest.mark.parametrize(
    "path",
    [
        "MEMORY.md",
        "memory/2026-01-20.md",
        "memory/Zürich – 東京 🙂.md",
        "memory/MEMORY.md",
        "memory/a.b.md",
        "memory/ .md",
        "memory/" + "x" * 125 + ".md",
    ],
    ids=["main", "day", "Unicode", "main in memory", "two dots", "blank", "longest"],
)
def test_a_note_is_written_and_read_back(alice: NoteFiles, path: str) -> None:
    assert alice.check(path) == path
    alice.stage(path, "new\n")
    alice.publish(path)
    assert alice.read(path) == "new\n"
    assert path in alice.paths()
    alice.set_aside(path, ".aside-1/x.md")
    assert alice.read(path) is None
    assert path not in alice.paths()


# Reading


@pytest.mark.parametrize("text", ["", "a\r\nb\rc\n", "no end", "\ufeff# A\n", "é\u2028🙂"])
def test_a_text_comes_back_as_it_was(alice: NoteFiles, text: str) -> None:
    alice.stage("memory/x.md", text)
    alice.publish("memory/x.md")
    assert alice.read("memory/x.md") == text


def test_an_agent_without_a_folder_has_no_notes(tmp_path: Path) -> None:
    nobody = NoteFiles(tmp_path / "notes" / "nobody")
    assert (nobody.paths(), nobody.staged()) == ([], [])
    assert nobody.read("MEMORY.md") is None
    assert nobody.read("memory/day.md") is None
    assert nobody.read_staged("MEMORY.md") is None
    nobody.discard("MEMORY.md")
    assert list(tmp_path.iterdir()) == []


def test_notes_are_listed_by_name_the_main_one_first(alice: NoteFiles) -> None:
    for name in ("b", "a", "Z", "é"):
        alice.stage(f"memory/{name}.md", "x")
        alice.publish(f"memory/{name}.md")
    assert alice.paths() == [
        "MEMORY.md", "memory/Z.md", "memory/a.md", "memory/b.md", "memory/day.md", "memory/é.md",
    ]  # fmt: skip


def test_only_names_of_notes_are_listed(world: Path, alice: NoteFiles) -> None:
    memory = world / "bank" / "notes" / "alice" / "memory"
    (memory / "two\nlines.md").write_text("x")
    (Path(os.fsdecode(os.fsencode(memory) + b"/\xff.md"))).write_text("x")
    (memory / ("x" * 126 + ".md")).write_text("x")
    assert alice.paths() == ["MEMORY.md", "memory/day.md"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"caf\xe9\n", "byte 3 is not UTF-8"),
        (b"\xed\xa0\x80", "byte 0 is not UTF-8"),
        (b"a\0b", "byte 1 is NUL"),
        (b"x" * (MOST_BYTES + 1), "over 1048576 bytes"),
    ],
    ids=["latin", "surrogate", "nul", "large"],
)
def test_a_file_that_is_no_text_is_refused(
    world: Path, alice: NoteFiles, content: bytes, message: str
) -> None:
    (world / "bank" / "notes" / "alice" / "MEMORY.md").write_bytes(content)
    assert_refused(alice.read, "MEMORY.md", match=f"'MEMORY.md' can't be read: .*{message}")


def test_a_note_may_have_a_mebibyte(alice: NoteFiles) -> None:
    alice.stage("MEMORY.md", "x" * MOST_BYTES)
    alice.publish("MEMORY.md")
    assert alice.read("MEMORY.md") == "x" * MOST_BYTES


def test_a_file_that_grows_while_it_is_read_is_refused(
    alice: NoteFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.os, "read", lambda file, size: b"x" * min(size, 1 << 16))
    assert_refused(alice.read, "MEMORY.md", match="over 1048576 bytes")


# What is on disk instead of a note


def link_to_secret(path: Path, world: Path) -> None:
    path.symlink_to(world / "secret.md")


def relative_link(path: Path, world: Path) -> None:
    path.symlink_to(os.path.relpath(world / "secret.md", path.parent))


def link_to_own_note(path: Path, world: Path) -> None:
    path.symlink_to(world / "bank" / "notes" / "alice" / "memory" / "day.md")


def dangling_link(path: Path, world: Path) -> None:
    path.symlink_to(world / "nowhere")


def link_to_itself(path: Path, world: Path) -> None:
    path.symlink_to(path)


def hard_link(path: Path, world: Path) -> None:
    path.hardlink_to(world / "secret.md")


def folder(path: Path, world: Path) -> None:
    path.mkdir()


def pipe(path: Path, world: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path, world: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def link_to_a_device(path: Path, world: Path) -> None:
    path.symlink_to("/dev/zero")


def device(path: Path, world: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except OSError:
        pytest.skip("only root makes devices")


IMPOSTORS = [
    link_to_secret, relative_link, link_to_own_note, dangling_link, link_to_itself, hard_link,
    folder, pipe, unix_socket, link_to_a_device, device,
]  # fmt: skip


@pytest.mark.parametrize("impostor", IMPOSTORS)
@pytest.mark.parametrize("path", ["MEMORY.md", "memory/x.md"])
def test_what_is_no_plain_file_is_neither_read_nor_replaced(
    world: Path, alice: NoteFiles, path: str, impostor: Callable[[Path, Path], None]
) -> None:
    real = world / "bank" / "notes" / "alice" / path
    real.unlink(missing_ok=True)
    impostor(real, world)
    assert path in alice.paths()
    before = tree(world)
    assert_refused(alice.read, path, match="can't be read: ")
    assert_refused(alice.stage, path, "new", match="can't be replaced: ")
    assert tree(world) == before


@pytest.mark.parametrize("impostor", IMPOSTORS)
def test_what_lies_in_the_way_of_a_staged_file_is_not_followed(
    world: Path, alice: NoteFiles, impostor: Callable[[Path, Path], None]
) -> None:
    staged = world / "bank" / "notes" / "alice" / "memory" / ".day.md.new"
    impostor(staged, world)
    assert alice.staged() == ["memory/day.md"]
    assert_refused(alice.read_staged, "memory/day.md", match="can't be read: ")
    if impostor is folder:
        assert_refused(alice.stage, "memory/day.md", "new", match="can't be written: ")
        return
    alice.stage("memory/day.md", "new")
    alice.publish("memory/day.md")
    assert alice.read("memory/day.md") == "new"
    assert (world / "secret.md").read_text() == SECRET
    assert not (world / "nowhere").exists()


@pytest.mark.parametrize("name", ["alice", "alice/memory"])
@pytest.mark.parametrize("elsewhere", ["bob", "bob/memory", "nowhere", "secret.md"])
def test_a_folder_that_is_a_link_or_a_file_is_refused(
    world: Path, alice: NoteFiles, name: str, elsewhere: str
) -> None:
    notes = world / "bank" / "notes"
    (notes / name).rename(world / "aside")
    (notes / name).symlink_to(notes / elsewhere)
    before = tree(world)
    for call in (alice.read, alice.read_staged, alice.publish, alice.discard):
        assert_refused(call, "memory/day.md", match="a symbolic link or a file is in the way")
    assert_refused(alice.stage, "memory/day.md", "new", match="a symbolic link or a file")
    assert_refused(alice.set_aside, "memory/day.md", "x.md", match="a symbolic link or a file")
    assert_refused(alice.paths, match="can't be listed: a symbolic link or a file")
    assert_refused(alice.staged, match="can't be listed: a symbolic link or a file")
    assert tree(world) == before


def test_a_folder_above_may_be_a_link(world: Path) -> None:
    (world / "link").symlink_to(world / "bank")
    assert NoteFiles(world / "link" / "notes" / "alice").read("MEMORY.md") == "alice's own\n"


# Writing


def test_a_staged_text_is_not_the_note_until_it_is_published(alice: NoteFiles) -> None:
    alice.stage("MEMORY.md", "new\n")
    assert alice.read("MEMORY.md") == "alice's own\n"
    assert alice.read_staged("MEMORY.md") == "new\n"
    assert alice.staged() == ["MEMORY.md"]
    assert alice.paths() == ["MEMORY.md", "memory/day.md"]
    alice.publish("MEMORY.md")
    assert alice.read("MEMORY.md") == "new\n"
    assert alice.staged() == []


def test_a_discarded_text_is_gone(alice: NoteFiles) -> None:
    alice.stage("memory/day.md", "new\n")
    alice.discard("memory/day.md")
    assert alice.read_staged("memory/day.md") is None
    assert alice.read("memory/day.md") == "alice's day\n"
    alice.discard("memory/day.md")


def test_what_is_staged_again_replaces_what_was(alice: NoteFiles) -> None:
    alice.stage("memory/day.md", "a longer text\n")
    alice.stage("memory/day.md", "short\n")
    assert alice.read_staged("memory/day.md") == "short\n"


def test_texts_under_other_keys_are_staged_side_by_side(alice: NoteFiles) -> None:
    for key in ("0a-1b", "2c-none"):
        alice.stage("memory/day.md", f"{key}\n", key)
    alice.stage("memory/day.md.md", "of another\n", "0a-1b")
    assert alice.staged() == ["memory/day.md", "memory/day.md.md"]
    assert alice.keys("memory/day.md") == ["0a-1b", "2c-none"]
    assert alice.read_staged("memory/day.md", "0a-1b") == "0a-1b\n"
    alice.publish("memory/day.md", "2c-none")
    assert alice.read("memory/day.md") == "2c-none\n"
    alice.discard("memory/day.md")
    assert alice.keys("memory/day.md") == []
    assert alice.keys("memory/day.md.md") == ["0a-1b"]


def test_whatever_is_in_the_place_of_a_note_is_set_aside_as_it_is(
    world: Path, alice: NoteFiles
) -> None:
    folder = world / "bank" / "notes" / "alice"
    (folder / "MEMORY.md").unlink()
    (folder / "MEMORY.md").symlink_to(world / "secret.md")
    alice.set_aside("MEMORY.md", f"{alice.unused('.aside')}/MEMORY.md")
    assert (folder / ".aside-1/MEMORY.md").readlink() == world / "secret.md"
    assert alice.unused(".aside") == ".aside-2"
    assert (world / "secret.md").read_text() == SECRET


def test_staged_notes_are_listed_the_main_one_first(alice: NoteFiles) -> None:
    for path in ("memory/b.md", "MEMORY.md", "memory/a.md"):
        alice.stage(path, "x")
    assert alice.staged() == ["MEMORY.md", "memory/a.md", "memory/b.md"]


def test_the_first_note_makes_the_folders(tmp_path: Path) -> None:
    carol = NoteFiles(tmp_path / "bank" / "notes" / "carol")
    carol.stage("memory/day.md", "x")
    carol.publish("memory/day.md")
    assert carol.paths() == ["memory/day.md"]


def test_a_relative_folder_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notes = NoteFiles(Path("alice"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    notes.stage("MEMORY.md", "x")
    assert (tmp_path / "alice").is_dir()


def test_nothing_is_published_where_nothing_is_staged(alice: NoteFiles) -> None:
    assert_refused(alice.publish, "MEMORY.md", match="can't be published: nothing is staged")
    assert alice.read("MEMORY.md") == "alice's own\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * (MOST_BYTES + 1), "over 1048576 bytes"),
        ("é" * (MOST_BYTES // 2 + 1), "over 1048576 bytes"),
        ("a\0", "byte 1 is NUL"),
        ("ab\ud800", "character 2 is a lone surrogate"),
        (b"bytes", "is not text"),
        (None, "is not text"),
    ],
    ids=["large", "large in bytes", "nul", "surrogate", "bytes", "nothing"],
)
def test_what_is_no_text_is_not_staged(
    world: Path, alice: NoteFiles, text: Any, message: str
) -> None:
    before = tree(world)
    assert_refused(alice.stage, "MEMORY.md", text, match=f"can't be written: .*{message}")
    assert tree(world) == before


@pytest.mark.parametrize("call", ["write", "fsync", "mkdir"])
def test_a_full_disk_leaves_everything_as_it_was(
    world: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    carol = NoteFiles(world / "bank" / "notes" / "carol")
    if call != "mkdir":
        carol.stage("memory/day.md", "old")
        carol.publish("memory/day.md")
    before = tree(world)
    monkeypatch.setattr(files.os, call, full)
    assert_refused(
        carol.stage, "memory/day.md", "new", match="can't be written: No space left on device"
    )
    assert tree(world) == before


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO], ids=["denied", "broken"])
def test_what_the_system_refuses_is_said(
    alice: NoteFiles, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files.os, "open", fail)
    assert_refused(alice.read, "MEMORY.md", match=f"'MEMORY.md' can't be read: {os.strerror(code)}")
    assert_refused(alice.paths, match=f"can't be listed: {os.strerror(code)}")
    assert_refused(alice.discard, "MEMORY.md", match=f"can't be listed: {os.strerror(code)}")


def test_no_file_stays_open(world: Path, alice: NoteFiles) -> None:
    before = os.listdir("/dev/fd")
    notes = NoteFiles(world / "bank" / "notes" / "alice", [world / "bank" / "notes" / "bob"])
    (world / "bank" / "notes" / "alice" / "memory" / "link.md").symlink_to("day.md")
    for _ in range(3):
        notes.paths()
        notes.read("memory/day.md")
        assert_refused(notes.read, "memory/link.md")
        notes.stage("memory/day.md", "x")
        notes.publish("memory/day.md")
    assert os.listdir("/dev/fd") == before


# Extra paths


@pytest.fixture
def docs(world: Path) -> Path:
    docs = world / "docs"
    (docs / "b" / "c").mkdir(parents=True)
    (docs / "z.md").write_text("z\n")
    (docs / "b" / "a.md").write_text("a\n")
    (docs / "b" / "c" / "deep.md").write_text("deep\n")
    (docs / "b" / "c" / "code.py").write_text(SECRET)
    (docs / ".hidden").mkdir()
    (docs / ".hidden" / "x.md").write_text(SECRET)
    (docs / ".x.md").write_text(SECRET)
    (docs / "link.md").symlink_to(world / "secret.md")
    (docs / "bob").symlink_to(world / "bank" / "notes" / "bob")
    return docs


@pytest.fixture
def extra(world: Path, docs: Path) -> NoteFiles:
    (world / "README.md").write_text("read me\n")
    return NoteFiles(world / "bank" / "notes" / "alice", [docs, world / "README.md"])


def test_extra_notes_come_after_the_agents_own(extra: NoteFiles) -> None:
    assert extra.paths() == [
        "MEMORY.md",
        "memory/day.md",
        "extra/README.md",
        "extra/docs/b/a.md",
        "extra/docs/b/c/deep.md",
        "extra/docs/z.md",
    ]


def test_extra_notes_are_read(extra: NoteFiles) -> None:
    assert extra.read("extra/README.md") == "read me\n"
    assert extra.read("extra/docs/b/c/deep.md") == "deep\n"
    assert extra.read("extra/docs/none.md") is None
    assert extra.read("extra/docs/none/none.md") is None


@pytest.mark.parametrize("path", ["extra/README.md", "extra/docs/z.md", "extra/docs/new.md"])
def test_extra_notes_are_never_changed(world: Path, extra: NoteFiles, path: str) -> None:
    before = tree(world)
    assert_refused(extra.stage, path, "new", match="only read")
    assert_refused(extra.set_aside, path, "x.md", match="only read")
    for call in (extra.publish, extra.discard, extra.read_staged):
        assert_refused(call, path, match="only read")
    assert tree(world) == before


@pytest.mark.parametrize(
    "path",
    [
        "extra/docs/link.md",
        "extra/docs/bob/MEMORY.md",
        "extra/docs/.x.md",
        "extra/docs/.hidden/x.md",
        "extra/docs/../secret.md",
        "extra/docs/b/../../secret.md",
        "extra/docs//z.md",
        "extra/docs/b/c/code.py",
        "extra/docs",
        "extra/docs/b",
        "extra/README.md/x.md",
        "extra/other/z.md",
        "extra//secret.md",
        "extra/../secret.md",
    ],
)
def test_no_extra_path_leads_elsewhere(extra: NoteFiles, path: str) -> None:
    assert_refused(extra.read, path)


def test_an_extra_path_that_is_not_there_has_no_notes(world: Path) -> None:
    notes = NoteFiles(world / "new", [world / "none", world / "none.md"])
    assert notes.paths() == []
    assert notes.read("extra/none.md") is None
    assert notes.read("extra/none/x.md") is None


def test_an_extra_folder_that_is_a_link_is_refused(world: Path, docs: Path) -> None:
    (world / "link").symlink_to(docs)
    notes = NoteFiles(world / "new", [world / "link"])
    assert_refused(notes.paths, match="'extra/link' can't be listed: a symbolic link")
    assert_refused(notes.read, "extra/link/z.md", match="a symbolic link")


def test_an_extra_file_that_is_a_link_is_refused(world: Path) -> None:
    (world / "link.md").symlink_to(world / "secret.md")
    notes = NoteFiles(world / "new", [world / "link.md"])
    assert notes.paths() == ["extra/link.md"]
    assert_refused(notes.read, "extra/link.md", match="a symbolic link")


def test_a_folder_above_an_extra_file_may_be_a_link(world: Path, docs: Path) -> None:
    (world / "link").symlink_to(docs)
    assert NoteFiles(world / "new", [world / "link" / "z.md"]).read("extra/z.md") == "z\n"


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["a/docs", "b/docs"], "a/docs' and .*b/docs' are both called 'docs'"),
        (["docs", "docs"], "both called 'docs'"),
        (["/"], "an empty part"),
        ([".hidden"], "starts with a dot"),
        (["a/.."], "starts with a dot"),
        (["two\nlines"], "not shown"),
    ],
    ids=["equal names", "the same", "root", "hidden", "up", "control"],
)
def test_extra_paths_that_have_no_name_are_refused(
    world: Path, items: list[str], message: str
) -> None:
    with pytest.raises(NoteRefused, match=message):
        NoteFiles(world, [Path(item) for item in items])
