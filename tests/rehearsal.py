"""Opens what an earlier version made: ``make rehearsal``, or by hand in two environments.

``python rehearsal.py make FOLDER``, with the package of the earlier version installed, makes banks,
checkpoints and runs, and writes down what they hold. ``python rehearsal.py open FOLDER``, with the
package of this version, opens a copy of each and compares. It prints a line for each, and ends with
1 if one was neither as it was left nor refused with a hint of what to do.

It uses what both versions have, and nothing of the tests.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tiermem import MemoryBank, __version__

PRESETS = ("tiers", "hot-warm-cold", "hot-cold-session", "lifetime", "vector", "weighted-sum")
QUESTIONS = ("who gave me coins?", "never trade", "the mill")
WORLDS = ("market", "household", "rumor", "town")
TICKS, MORE = 8, 12
EXPECTED = "expected.json"
TIERMEM = str(Path(sys.executable).with_name("tiermem"))


# What the earlier version makes


def fill(bank: MemoryBank) -> None:
    """A bit of everything that a bank may hold."""
    for tick in range(6):
        bank.advance(tick * 3)
        bank.add_many(
            [
                ("alice", f"m{each} of {tick}: gave me coins", each % 5, {"n": each})
                for each in range(9)
            ]
        )
        alice, bob = bank.agent("alice"), bank.agent("bob")
        alice.add(f"cold {tick}, moved to the mill", temperature="cold", kind="decision", ttl=90)
        alice.add(f"forgotten {tick}", session=1, speaker="Dora")
        alice.forget(alice.all("normal")[0].id)
        alice.delete(alice.all("low")[0].id)
        bob.add("שלום 🐝 “über”", "important", tags=["task"])
        bob.search("coins")
    bank.agent("bob").add("NEVER trade with agent_X", "pinned", key="trade", value="no")
    bank.agent("alice").notes.write("MEMORY.md", "# Plan\n\nNever trade fish.\n")
    bank.group("friends", ["alice", "bob"]).post("bob", "the mill is closed")
    alice = bank.agent("alice")
    getattr(alice, "social", alice).tell("bob", alice.all("normal")[0].id)


def held(bank: MemoryBank) -> dict[str, Any]:
    """What a bank holds and answers, as JSON values."""
    found = {
        name: [
            [[hit.memory.id, round(hit.score, 9)] for hit in bank.agent(name).explain(text, 5)]
            for text in QUESTIONS
        ]
        for name in bank.agents()
    }
    texts = {
        name: [each.content for each in bank.agent(name).all()]
        + [each.content for each in bank.agent(name).all(temperature="cold")]
        for name in bank.agents()
    }
    notes = {
        name: {path: bank.agent(name).notes.read(path) for path in bank.agent(name).notes.paths()}
        for name in bank.agents()
    }
    return {
        "state_hash": bank.state_hash(), "tick": bank.tick, "texts": texts, "notes": notes,
        "boards": {name: [own.content for own in bank.group(name).all()] for name in bank.groups()},
        "found": found,
    }  # fmt: skip


def make(folder: Path) -> None:
    """Fill ``folder`` with what this version makes, and what is to be found in it."""
    folder.mkdir(parents=True)
    expected: dict[str, Any] = {"version": __version__}
    for preset in PRESETS:
        place = folder / f"bank-{preset}"
        options = {"clock": {"ticks_per_day": 4}, "storage": {"sync": "manual"}}
        with MemoryBank.open(place, options, preset=preset) as bank:
            fill(bank)
            bank.checkpoint(folder / f"checkpoint-{preset}.tmck", extra={"of": preset})
            expected[f"checkpoint-{preset}.tmck"] = held(bank)
        with MemoryBank.at(place) as bank:  # closing a bank may compact it
            expected[place.name] = held(bank)
    expected["bank-killed"] = make_and_kill(folder / "bank-killed")
    with MemoryBank.open(folder / "bank-synced") as bank:  # with a store of mem0's
        fill(bank)
        expected["bank-synced"] = held(bank)
    for world in WORLDS:
        scenario = {"seed": 7, "checkpoint": {"every": 4},
                    "simulation": {"world": world, "agents": 6, "ticks": TICKS}}  # fmt: skip
        expected[f"run-{world}"] = run(folder / f"run-{world}", scenario)
    with model() as url:
        asking = {"seed": 7, "checkpoint": {"every": 4},
                  "llm": {"provider": "openai", "config": {"model": "m", "openai_base_url": url}},
                  "simulation": {"world": "market", "agents": 6, "ticks": TICKS,
                                 "policy": "llm"}}  # fmt: skip
        expected["run-asking"] = run(folder / "run-asking", asking)
    (folder / EXPECTED).write_text(json.dumps(expected, indent=1, ensure_ascii=False))


def make_and_kill(folder: Path) -> dict[str, Any]:
    """A bank whose process was killed: its last commits are in SQLite's log."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        bank = MemoryBank.open(folder, storage={"sync": "manual"})
        fill(bank)
        os.write(writing, json.dumps(held(bank)).encode() + b"\n")
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(writing)
    with os.fdopen(reading) as file:
        said: dict[str, Any] = json.loads(file.readline())
    os.waitpid(child, 0)
    return said


def run(folder: Path, scenario: dict[str, Any]) -> dict[str, Any]:
    """A run of a scenario, and the state hash after each of its ticks."""
    file = folder.with_suffix(".yaml")
    file.write_text(json.dumps(scenario))
    tiermem("run", file, "--out", folder, "-q", check=False)  # a report may fail: the ticks count
    return {"run": True, "hashes": hashes(folder)}


def hashes(folder: Path) -> list[str]:
    found = []
    for tick in range(1, TICKS + 1):
        with MemoryBank.at(folder / "bank", tick) as bank:
            found.append(bank.state_hash())
    return found


@contextlib.contextmanager
def model() -> Iterator[str]:
    """A language model's server on this machine, whose answer depends on the question alone."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            digest = hashlib.sha256(json.dumps(json.loads(body)["messages"]).encode()).digest()
            actions: list[dict[str, Any]] = [{"name": ["accept", "decline"][digest[1] % 2]}]
            if digest[2] % 2:
                note = {"content": f"note {digest[4]}", "tier": "low"}
                actions.append({"name": "store_memory", "arguments": note})
            message = {"role": "assistant", "content": json.dumps({"actions": actions})}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "m",
                      "choices": [choice]}  # fmt: skip
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ.setdefault("OPENAI_API_KEY", "none")
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()


# What this version makes of it


def open_all(folder: Path) -> bool:
    """Open a copy of each; whether each was as it was left, or its error says what to do."""
    expected = json.loads((folder / EXPECTED).read_text())
    print(f"made by {expected.pop('version')}, opened by {__version__}")
    scratch = folder / "copies"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    is_well = True
    for name, value in expected.items():
        copy = scratch / name
        if (folder / name).is_dir():
            shutil.copytree(folder / name, copy)
        else:
            shutil.copy(folder / name, copy)
        told = opened_run(copy, value) if "run" in value else opened_bank(copy, value)
        for what, said in told:
            print(f"{name}: {what}: {said or 'as it was'}")
            is_well = is_well and (not said or said.startswith("refused, and says what to do"))
    return is_well


def opened_bank(place: Path, expected: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a bank or a checkpoint has that is not as it was."""
    is_checkpoint = place.suffix == ".tmck"
    folder = place.with_suffix(".bank") if is_checkpoint else place
    try:
        with (
            MemoryBank.restore(place, folder) if is_checkpoint else MemoryBank.open(folder) as bank
        ):
            found = json.loads(json.dumps(held(bank)))
            bank.agent("alice").add("it goes on")
    except Exception as error:
        yield "open", refusal(error)
        return
    for key, value in expected.items():
        yield key, "" if found[key] == value else f"differs: {first_difference(value, found[key])}"
    if not is_checkpoint:
        done = tiermem("doctor", folder, check=False)
        bad = [line for line in done.stdout.splitlines() if re.match(r"\W*(error|bad|fail)", line)]
        yield "doctor", "" if done.returncode == 0 else f"{bad or done.stdout + done.stderr}"


def opened_run(folder: Path, expected: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a run does that is not as it was."""
    try:
        found = hashes(folder)
        yield "state of each tick", "" if found == expected["hashes"] else "differs"
    except Exception as error:
        yield "state of each tick", refusal(error)
    for words in (("replay", folder, "--verify", "-q"), ("report", folder),
                  ("diff", folder, folder),
                  ("branch", folder, "--at", "4", "--out", f"{folder}-branch", "-q"),
                  ("show", folder, "--agent", "agent_00"), ("analyse", folder),
                  ("why", folder, "--agent", "agent_00", "--tick", "4")):  # fmt: skip
        if "asking" in folder.name and words[0] == "branch":
            continue  # it would ask the model
        done = tiermem(*words, check=False)
        yield words[0], "" if done.returncode == 0 else refusal_of(done.stderr)
    if "asking" not in folder.name:
        done = tiermem("resume", folder, "--ticks", MORE, "-q", check=False)
        yield "resume", "" if done.returncode == 0 else refusal_of(done.stderr)


def refusal(error: Exception) -> str:
    hint = getattr(error, "hint", "")
    return f"refused, and says what to do: {error}; {hint}" if hint else f"failed: {error!r}"


def refusal_of(text: str) -> str:
    lines = text.strip().splitlines()
    is_whole = len(lines) >= 3 and lines[-1].strip().startswith("do: ")
    said = " / ".join(line.strip() for line in lines[-3:])
    return f"refused, and says what to do: {said}" if is_whole else f"failed: {text[-400:]}"


def first_difference(one: Any, other: Any, place: str = "") -> str:
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = [(key, one[key], other[key]) for key in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = list(zip(range(len(one)), one, other, strict=True))
    else:
        return f"{place} was {one!r:.120}, is {other!r:.120}"
    return next(first_difference(a, b, f"{place}/{key}") for key, a, b in pairs if a != b)


def tiermem(*words: object, check: bool = True) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [TIERMEM, *map(str, words)], capture_output=True, text=True, check=False, timeout=600
    )
    if check and done.returncode:
        raise RuntimeError(f"tiermem {words}: {done.stderr}")
    return done


if __name__ == "__main__":
    what, place = sys.argv[1:]
    if what == "make":
        make(Path(place))
    else:
        sys.exit(not open_all(Path(place)))
