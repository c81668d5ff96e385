"""Run the scripts beside this one, each in environments of its own, and print what each says.

A script needs the package index. The exit code is 0 if each script ends with 0.
"""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NO_SCRIPTS = {"every.py", "suites.py"}


def main() -> int:
    scripts = sorted(path for path in HERE.glob("*.py") if path.name not in NO_SCRIPTS)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help=f"of {', '.join(path.stem for path in scripts)}")
    wanted = parser.parse_args().name or [path.stem for path in scripts]
    unknown = set(wanted) - {path.stem for path in scripts}
    if unknown:
        parser.error(f"there is no script {', '.join(sorted(unknown))}")
    failed = []
    for name in wanted:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, HERE / f"{name}.py"]).returncode:
            failed.append(name)
    print(f"not as expected: {', '.join(failed)}" if failed else "all as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
