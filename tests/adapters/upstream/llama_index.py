"""Run LlamaIndex's own tests of memory with TierMem's memory block.

Each ``Memory`` then has a ``TierMemoryBlock`` beside its own blocks, and each
``VectorMemoryBlock`` is one. The source distribution has no tests: they run only if ``--source``
names the folder ``llama-index-core`` of a checkout. Our own tests that need LlamaIndex always run.
All runs in an environment of its own. Each suite gets a line: how many tests passed, how many were
expected to, and the names of those that failed. The exit code is 0 if all that ran is as expected.
"""

import argparse
import shutil
import sys
from pathlib import Path

import mutations
import suites

VERSION = "0.14.25"
PACKAGES = (f"llama-index-core=={VERSION}", "pytest-asyncio")
_MEMORY, _VECTOR = "tests/memory/test_memory_", "tests/memory/blocks/test_vector.py"
TESTS = (
    *(f"{_MEMORY}{name}.py" for name in ("base", "blocks_base", "custom_chat_store", "schema")),
    _VECTOR,
)
PASSING, REACHING = 36, 25
_MORE = "it counts messages, and the block's content is one more"
INSIDE = {
    f"{_MEMORY}base.py::test_manage_queue_over_limit": _MORE,
    f"{_MEMORY}base.py::test_manage_queue_preserves_conversation_turn": _MORE,
    f"{_MEMORY}custom_chat_store.py::test_waterfall_archives_into_custom_chat_store": _MORE,
    f"{_VECTOR}::test_vector_memory_block_put": "it looks for a node of a vector store",
    f"{_VECTOR}::test_node_postprocessors": "it wants nodes to be processed",
    f"{_VECTOR}::test_format_template": "it wants a template of the block's own",
}
"""The tests that can't pass, each with the reason."""
OUR_OWN = suites.ROOT / "tests/adapters/test_llama_index_block.py"
SWAP = ("-p", "llama_index_swap", "-o", "addopts=", "-o", "asyncio_mode=auto")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "llama-index"
    parser.add_argument("--work", type=Path, default=work, help="where the environment is kept")
    parser.add_argument("--source", type=Path, help="llama-index-core of a checkout")
    options = parser.parse_args()
    python = suites.environment(options.work.resolve(), "llama-index", PACKAGES)
    is_good = True
    if options.source is None:
        print("llama-index-core: its own tests were not run; --source names them", flush=True)
    else:
        # Beside its tests, the checkout's package would hide the installed one.
        apart = options.work.resolve() / "checkout"
        shutil.rmtree(apart, ignore_errors=True)
        shutil.copytree(options.source / "tests", apart / "tests")
        (apart / "pytest.ini").write_text("[pytest]\n")  # or else TierMem's own settings count
        results = suites.tried(python, apart, TESTS, *SWAP, reaches="tiermem.llama_index")
        name = f"llama-index-core {VERSION}"
        is_good &= suites.line(name, results, PASSING, INSIDE, reaching=REACHING)
    results = suites.tried(python, suites.ROOT, [OUR_OWN], "-p", "no:asyncio")
    is_good &= suites.line("tiermem.llama_index", results, None)
    is_good &= mutations.noticed(python, "llama_index", [OUR_OWN], "-p", "no:asyncio")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
