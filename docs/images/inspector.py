"""Takes the pictures of the inspector's views, in Debian's Chromium.

    python docs/images/inspector.py [--size 1920x1080] [--dark] [--out FOLDER]

Runs of the shipped scenarios are made first, which takes a minute. It needs `pip install pillow`.
"""

import argparse
import io
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "interfaces")]

from browsers import browsing, served  # noqa: E402 - from the folder above
from PIL import Image  # noqa: E402

from tiermem import MemoryBank  # noqa: E402


def made(folder: Path) -> tuple[Path, Path, Path]:
    """A run of the market, the same without a warning, and a run of the rumour in a society."""
    tiermem = Path(sys.executable).with_name("tiermem")
    market, other, rumor = folder / "market", folder / "what-if", folder / "rumor"
    for command in (
        ("run", ROOT / "simulations" / "market.yaml", "--out", market, "-q"),
        ("branch", market, "--at", "60", "--set", "memory.max_pinned=2", "--out", other, "-q"),
        ("run", ROOT / "simulations" / "rumor_society.yaml", "--out", rumor, "-q"),
    ):
        subprocess.run([tiermem, *command], check=True)
    return market, other, rumor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", default="1280x720", help="of the window, such as 1920x1080")
    parser.add_argument("--dark", action="store_true", help="as on a screen set to dark")
    parser.add_argument("--out", type=Path, default=HERE, help="where the pictures go")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, browsing(Path(scratch) / "profile") as browser:
        device = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if options.dark else "light"}
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

        def take(name: str, view: str, *ready: str) -> None:
            """A picture of a view, as soon as it shows what is waited for."""
            browser.go(f"#/{view}")
            for each in ready:
                browser.shows(each)
            time.sleep(1)  # curves and graphs are drawn
            shot = Image.open(io.BytesIO(browser.driver.get_screenshot_as_png())).convert("RGB")
            shot.quantize(256).save(options.out / f"inspector-{name}.png", optimize=True)

        market, other, rumor = made(Path(scratch))
        with MemoryBank.at(market / "bank") as bank:
            warning = bank.agent("agent_03").all("pinned")[0].id
        with served(market, other) as address:
            browser.open(address)
            rows = "#memories[data-ready=true] .row"
            take("agent", "agent/agent_03?t=60", rows, ".part[data-part=did]")
            take("memory", f"memory/{warning}?t=60", "#memory-text")
            curves = ".frame[data-view=compare] canvas"
            take("compare", "compare/agent_00?t=61", curves, "[data-side='1']")
            take("overview", "overview?t=16", ".frame[data-view=overview] canvas")  # all is read
        with served(rumor) as address:
            browser.open(address)
            view = "population?t=60&colour=accuracy"
            take("population", view, ".frame[data-view=population] main svg", ".colours .ramp")


if __name__ == "__main__":
    main()
