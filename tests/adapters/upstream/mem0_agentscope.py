"""AgentScope's stock ``Mem0Middleware`` with ``tiermem.mem0.AsyncMemory`` as its client.

AgentScope ships no tests of the middleware, so this script makes one: it installs AgentScope and
this project in an environment of their own, and lets the middleware's tools and its retrieval work.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import suites

VERSION = "2.0.10"
CHECKS = """
import asyncio, sys, tempfile
from agentscope.middleware import Mem0Middleware
from tiermem.mem0 import AsyncMemory

failed = []

def check(name, holds):
    if not holds:
        failed.append(name)

async def main(folder):
    client = AsyncMemory(folder, infer=False)
    middleware = Mem0Middleware(client=client, user_id="ann", agent_id="bot", mode="both")
    tools = {tool.name: tool for tool in await middleware.list_tools()}
    check("tools", set(tools) == {"search_memory", "add_memory"})
    await tools["add_memory"](thinking="it matters", content=["Ann never eats fish"])
    await tools["add_memory"](thinking="it matters", content=["Ann lives by the harbour"])
    told = await tools["search_memory"](keywords=["what does Ann eat?"])
    check("search_memory", "Ann never eats fish" in str(told))
    found = await middleware._async_search("fish", user_id="ann", agent_id="bot")
    check("retrieval", "Ann never eats fish" in found)
    check("isolation", await middleware._async_search("fish", user_id="bob", agent_id=None) == [])
    check("kept", len((await client.get_all(filters={"user_id": "ann"}))["results"]) == 2)
    client.close()
    again = AsyncMemory(folder, infer=False)
    check("reopened", len((await again.get_all(filters={"agent_id": "bot"}))["results"]) == 2)
    again.close()

with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(folder))
names = f"; failed: {', '.join(failed)}" if failed else ""
print(f"agentscope {6 - len(failed)} passed, 6 expected{names}")
sys.exit(bool(failed))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=suites.ROOT / ".venv-adapters")
    folder = parser.parse_args().work
    folder /= "agentscope-newest" if suites.NEWEST else f"agentscope-{VERSION}"
    python, done = folder / "bin" / "python", folder / "installed"
    if suites.NEWEST or not done.exists():
        suites.run(suites.newer_python(), "-m", "venv", "--clear", folder)
        packages = [suites.unpinned(f"agentscope=={VERSION}"), "-e", str(suites.ROOT)]
        suites.run(python, "-m", "pip", "install", "--quiet", *packages)
        done.touch()
    environment = {**os.environ, "MEM0_TELEMETRY": "False"}
    return subprocess.run([python, "-c", CHECKS], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
