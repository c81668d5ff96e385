"""Lines of a user's code that read a clock or the environment, or draw unseeded numbers."""

from pathlib import Path
from random import Random

import pytest

from tiermem.testing.unseeded import watched
from tiermem.testing.world_laws import unlike

CLOCK, RANDOM = "reads the clock", "is not seeded"


def lines_of(code: str, folder: Path, *, environment: bool = False) -> list[tuple[str, int, str]]:
    """What is found in a module with this code, while it runs."""
    path = folder / "mine.py"
    path.write_text(code)
    with watched(lambda name: name == str(path), environment=environment) as found:
        exec(compile(code, str(path), "exec"), {"rng": Random(1)})
    return [(Path(file).name, line, what) for file, line, what in sorted(found)]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("import random; random.random()", f"random.random() {RANDOM}"),
        ("import random; random.choice([1, 2])", f"random.choice() {RANDOM}"),
        ("from random import shuffle; shuffle([1, 2])", f"random.shuffle() {RANDOM}"),
        ("import random; random.gauss(0, 1)", f"random.gauss() {RANDOM}"),
        ("import random; random.Random()", f"random.Random() without a seed {RANDOM}"),
        ("import random; random.SystemRandom().randrange(3)", f"random.randrange() {RANDOM}"),
        ("import secrets; secrets.token_hex()", f"secrets.token_hex() {RANDOM}"),
        ("import os; os.urandom(3)", f"os.urandom() {RANDOM}"),
        ("import uuid; uuid.uuid4()", f"uuid.uuid4() {RANDOM}"),
        ("import uuid; uuid.uuid1()", f"uuid.uuid1() {RANDOM}"),
        ("import numpy as np; np.random.rand(2)", f"numpy.random.rand() {RANDOM}"),
        ("from numpy.random import normal; normal()", f"numpy.random.normal() {RANDOM}"),
        ("import numpy as np; np.random.default_rng()", f"numpy.random.default_rng() {RANDOM}"),
        ("import time; time.time()", f"time.time() {CLOCK}"),
        ("from time import monotonic; monotonic()", f"time.monotonic() {CLOCK}"),
        ("import time; time.strftime('%H')", f"time.strftime() {CLOCK}"),
        ("from datetime import datetime; datetime.now()", f"datetime.now() {CLOCK}"),
        ("import datetime; datetime.date.today()", f"date.today() {CLOCK}"),
    ],
)
def test_a_call_is_named_by_file_and_line(code: str, what: str, tmp_path: Path) -> None:
    found = lines_of(f"pass\n\n{code}\n", tmp_path)
    assert [(name, line) for name, line, _ in found] == [("mine.py", 3)] * len(found)
    assert any(each.startswith(what) for _, _, each in found)


@pytest.mark.parametrize(
    "code",
    [
        "rng.random(), rng.choice([1, 2]), rng.gauss(0, 1), rng.sample(range(9), 3)",
        "import random; random.Random(7).shuffle([1, 2])",
        "import numpy as np; np.random.default_rng(7).normal()",
        "import uuid; uuid.UUID(int=7)",
        "from datetime import date; date(2026, 1, 1).isoformat()",
        "import tempfile; tempfile.gettempdir()",  # not this code's own call
    ],
)
def test_seeded_numbers_and_fixed_dates_are_not_named(code: str, tmp_path: Path) -> None:
    assert lines_of(code, tmp_path) == []


READS = [
    "import os; os.environ['PATH']",
    "import os; os.environ.get('PATH', '')",
    "import os; os.environ.get('no such variable')",
    "import os; 'PATH' in os.environ",
    "import os; dict(os.environ)",
    "import os; list(os.environ.items())",
    "import os; os.getenv('PATH')",
    "from os import getenv; getenv('PATH')",
    "import os; os.getenvb(b'PATH')",
]


@pytest.mark.parametrize("code", READS)
def test_what_reads_the_environment_is_named_where_that_matters(code: str, tmp_path: Path) -> None:
    what = "os.environ is not a part of a run; use world_options or policy_options"
    found = lines_of(f"pass\n{code}\n", tmp_path, environment=True)
    assert found == [("mine.py", 2, what)]
    assert lines_of(code, tmp_path) == []


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.path.expanduser('~')",  # not this code's own read
        "import os; os.cpu_count(); os.path.join('a', 'b')",
        "import os; os.environ['TIERMEM_OF_A_TEST'] = 'set'; del os.environ['TIERMEM_OF_A_TEST']",
        "from collections.abc import Mapping; {'a': 1}.get('a'); isinstance({}, Mapping)",
    ],
)
def test_what_does_not_read_the_environment_is_not_named(code: str, tmp_path: Path) -> None:
    assert lines_of(code, tmp_path, environment=True) == []


def test_numpy_is_as_it_was_afterwards(tmp_path: Path) -> None:
    import numpy as np

    before = np.random.rand
    lines_of("import numpy as np; np.random.rand()", tmp_path)
    assert np.random.rand is before


def test_long_texts_are_cut_to_the_part_that_differs() -> None:
    told = unlike("memory ", ["so " * 99 + "red" + " so" * 99], ["so " * 99 + "blue" + " so" * 99])
    assert told is not None
    one, two = told.split(", and ")
    assert "red" in one
    assert "blue" in two
    assert len(told) < 200
    assert unlike("", {"a": 1}, {"a": 2}) == "a is 1, and 2"
