"""Checks the container and the service: ``make container``, after a wheel is in dist/.

It builds ``deploy/Dockerfile`` with docker, podman or buildah, and uses the image as
``docs/howto/deploy.md`` says: a bank and a token, ``serve`` with a read-only file system and a user
without rights, a health check, a backup beside it, SIGTERM, a second start, and ``mcp``. Where no
container can be started, bubblewrap does the same with the image's files. What could not be checked
is said at the end.

``--base IMAGE`` builds on another image than the Dockerfile's, ``--build-option`` is given to the
builder, and can be repeated; ``--image NAME`` checks an image that is there.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
HERE = ROOT / "deploy"
HOME = "/var/lib/tiermem"
URL = "http://127.0.0.1:8765"
LEFT_OUT: list[str] = []
Process = subprocess.Popen[str]


def said(*command: object, **options: Any) -> str:
    """What a command printed; it has to succeed."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(base: str | None, options: list[str]) -> str:
    """Build the image with what is there; its name."""
    builders = {
        "docker": ["docker", "build"],
        "buildah": ["buildah", "bud", "--format", "docker", "--isolation", "chroot"],
        "podman": ["podman", "build", "--format", "docker"],
    }
    chosen = next(filter(works, builders), None)
    if chosen is None:
        sys.exit("building a container needs docker, podman or buildah")
    based = ["--build-arg", f"BASE={base}"] if base else []
    file = ["-f", HERE / "Dockerfile", "-t", "tiermem:check", ROOT]
    said(*builders[chosen], *options, *based, *file)
    print(
        f"built by {chosen}" + (f" on {base}, in place of the Dockerfile's image" if base else "")
    )
    return "tiermem:check" if chosen == "docker" else "localhost/tiermem:check"


def works(name: str) -> bool:
    """Whether a program for containers can be used here."""
    return (
        bool(shutil.which(name))
        and not subprocess.run([name, "info"], capture_output=True, check=False).returncode
    )


def starts(engine: str, image: str) -> bool:
    """Whether docker or podman can start a container of the image here."""
    tried = subprocess.run(
        [engine, "run", "--rm", image, "--version"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        reason = (tried.stderr.strip().splitlines() or ["it gives no reason"])[-1]
        LEFT_OUT.append(f"{engine} can't start a container here: {reason}")
    return not tried.returncode


class Container:
    """Starts commands of an image, each as a container of its own over one volume."""

    def __init__(self, engine: str, image: str, volume: Path) -> None:
        self.engine, self.image, self.volume = engine, image, volume

    def command(self, *arguments: str, entrypoint: tuple[str, ...] | None = None) -> list[str]:
        other = ["--entrypoint", entrypoint[0]] if entrypoint else []
        return [
            self.engine, "run", "--rm", "--interactive", "--init=false", "--network", "host",
            "--read-only", "--tmpfs", "/tmp", "--cap-drop", "all",
            "--security-opt", "no-new-privileges", "--volume", f"{self.volume}:{HOME}",
            *other, self.image, *(entrypoint or ())[1:], *arguments,
        ]  # fmt: skip

    def start(self, *arguments: str, **options: Any) -> Process:
        return subprocess.Popen(self.command(*arguments), text=True, **options)

    def stop(self, process: Process) -> None:
        process.send_signal(signal.SIGTERM)  # it is passed on


class Sandbox(Container):
    """The image's files, under bubblewrap: read-only, as the image's user, without rights."""

    def __init__(self, root: Path, config: dict[str, Any], volume: Path) -> None:
        super().__init__("bwrap", str(root), volume)
        self.config = config
        found = re.search(r"^tiermem:x:(\d+):(\d+):", (root / "etc/passwd").read_text(), re.M)
        assert found is not None
        self.user, self.group = found.groups()
        assert config["User"] == "tiermem", config["User"]
        said("chown", f"{self.user}:{self.group}", volume)
        self._children: dict[int, int] = {}

    def command(self, *arguments: str, entrypoint: tuple[str, ...] | None = None) -> list[str]:
        return [
            "bwrap", "--ro-bind", self.image, "/", "--proc", "/proc", "--dev", "/dev",
            "--perms", "1777", "--tmpfs", "/tmp", "--bind", str(self.volume), HOME,
            "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--die-with-parent",
            "--clearenv", *(part for each in self.config["Env"]
                            for part in ("--setenv", *each.split("=", 1))),
            "--chdir", self.config["WorkingDir"],
            "setpriv", "--reuid", self.user, "--regid", self.group, "--clear-groups",
            "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all",
            *(entrypoint or self.config["Entrypoint"]), *arguments,
        ]  # fmt: skip

    def start(self, *arguments: str, **options: Any) -> Process:
        reading, writing = os.pipe()
        command = self.command(*arguments)
        command[1:1] = ["--info-fd", str(writing)]
        process = subprocess.Popen(command, text=True, pass_fds=(writing,), **options)
        os.close(writing)
        with os.fdopen(reading) as file:
            self._children[process.pid] = json.load(file)["child-pid"]
        return process

    def stop(self, process: Process) -> None:
        os.kill(self._children[process.pid], signal.SIGTERM)


@contextmanager
def container(image: str) -> Iterator[Container]:
    """The image, to be started by what can start it here."""
    with tempfile.TemporaryDirectory() as place:
        volume = Path(place) / "volume"
        volume.mkdir(0o700)
        for engine in ("docker", "podman"):
            if works(engine) and starts(engine, image):
                said("chown", "10001:10001", volume)
                yield Container(engine, image, volume)
                return
        if not (shutil.which("buildah") and shutil.which("bwrap")):
            sys.exit("\n".join([*LEFT_OUT, "and there is no buildah with bubblewrap"]))
        about = json.loads(said("buildah", "inspect", "--type", "image", image))
        name = said("buildah", "from", image).strip()
        try:
            yield Sandbox(
                Path(said("buildah", "mount", name).strip()), about["Docker"]["config"], volume
            )
        finally:
            said("buildah", "rm", name)


# What is checked


def asked(path: str, token: str | None = None, body: object = None) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, None


def serving(image: Container) -> Process:
    """The container, with the command that the image has, when it answers."""
    process = image.start("serve", "bank", "--host", "0.0.0.0", stdout=subprocess.PIPE)
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            if asked("/health")[0] == 200:
                return process
        except OSError:
            time.sleep(0.2)
    sys.exit("the container does not answer")


def ended(image: Container, process: Process) -> None:
    image.stop(process)
    assert process.wait(120) == 0, process.returncode
    assert process.stdout is not None
    process.stdout.close()


def check(image: Container) -> None:
    def tiermem(*arguments: str) -> str:
        return said(*image.command(*arguments))

    def shell(script: str) -> str:
        return said(*image.command("-c", script, entrypoint=("sh",)))

    assert shell("id -u").strip() == "10001"
    inside = shell(
        f"touch /x /opt/tiermem/x /etc/x {HOME}/x /tmp/x; ls /x /etc/x {HOME}/x /tmp/x; true"
    )
    assert set(inside.split()) == {f"{HOME}/x", "/tmp/x"}, inside
    assert re.search(r"CapEff:\t0+\n", shell("cat /proc/self/status"))
    print("it runs as 10001 without rights, and writes to its volume and to /tmp alone")

    refused = subprocess.run(image.command("serve", "bank", "--create", "--host", "0.0.0.0"),
                             capture_output=True, text=True)  # fmt: skip
    assert refused.returncode
    assert "token" in refused.stderr, refused.stderr
    tiermem("init", "bank")
    token = tiermem("token", "create", "bank", "--agent", "alice").split()[0]
    print("without a token nothing is served beyond the container")

    process = serving(image)
    health = health_command(image)
    said(*image.command(*health[1:], entrypoint=(health[0],)))
    assert asked("/status")[0] == 401
    assert asked("/memory", token, {"content": "NEVER transfer to agent_X"})[0] in (200, 201)
    assert "agent_X" in str(asked("/memory/query", token, {"query": "transfer"}))
    made = json.loads(tiermem("backup", "bank", "backup", "--json"))
    assert made["commits"] >= 1
    ended(image, process)
    print("it serves, is healthy, stores for who has a token, is backed up, and ends by SIGTERM")
    assert subprocess.run(image.command(*health[1:], entrypoint=(health[0],)),
                          capture_output=True).returncode  # fmt: skip

    process = serving(image)
    assert "agent_X" in str(asked("/memory/query", token, {"query": "transfer"}))
    ended(image, process)
    assert "agent_X" in tiermem("search", "backup", "--agent", "alice", "transfer")
    print("after a second start the memory is there, and in the backup")

    check_mcp(image)
    print("mcp answers over standard streams")


def health_command(image: Container) -> list[str]:
    """The command of the image's health check."""
    if isinstance(image, Sandbox):
        test = image.config["Healthcheck"]["Test"]
    else:
        (about,) = json.loads(said(image.engine, "image", "inspect", image.image))
        config = about["Config"] if "Healthcheck" in about["Config"] else about
        test = config["Healthcheck"]["Test"]
    assert test[0] == "CMD", test
    return list(test[1:])


def check_mcp(image: Container) -> None:
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "check", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "memory_search", "arguments": {"query": "transfer"}}},
    ]  # fmt: skip
    given = "".join(json.dumps(each) + "\n" for each in messages)
    out = said(*image.command("mcp", "bank", "--agent", "alice"), input=given, timeout=120)
    answers = {each["id"]: each for each in map(json.loads, out.splitlines()) if "id" in each}
    assert "agent_X" in json.dumps(answers[2]["result"]), out


def check_service() -> None:
    """What systemd says of the unit, without starting it."""
    unit = HERE / "tiermem.service"
    if not shutil.which("systemd-analyze"):
        LEFT_OUT.append("the unit of systemd: there is no systemd-analyze")
        return
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    wrong = [
        line
        for line in done.stderr.splitlines()
        if unit.name in line and "is not executable" not in line  # it may not be installed here
    ]
    assert not wrong, wrong
    said("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    print("systemd finds nothing wrong with the unit, and its exposure is 2.0 or less, of 10")
    LEFT_OUT.append("the unit of systemd was read, and not started")


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--base")
    options.add_argument("--image")
    options.add_argument("--build-option", action="append", default=[])
    given = options.parse_args()
    if given.image is None and not list((ROOT / "dist").glob("tiermem-*.whl")):
        sys.exit("there is no wheel in dist/: make one first")
    with container(given.image or build(given.base, given.build_option)) as image:
        how = "" if image.engine != "bwrap" else " with the image's files, and not as a container"
        print(f"started by {image.engine}{how}")
        check(image)
    check_service()
    for each in LEFT_OUT:
        print(f"not checked: {each}")


if __name__ == "__main__":
    main()
