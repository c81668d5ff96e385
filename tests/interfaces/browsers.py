"""A real browser that looks at the inspector's page, and a server in this process for it."""

import contextlib
import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.interfaces.http import server as http
from agents.interfaces.inspector.inspection import Inspection
from agents.interfaces.inspector.server import Inspector, new_token, serve
from waiting import LONG, until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
_HOST = "127.0.0.1"
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--window-size=1280,720",
)


class Browser:
    """A page in a browser: what it shows, and clicks and keys for it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, address: str, view: str = "") -> None:
        """Load the page anew, with the part of its address behind ``#``."""
        self.driver.get("about:blank")
        self.complaints()
        self.driver.get(f"{address}{view}")
        self.shows(".frame, .failed")

    def go(self, view: str) -> None:
        """Change the part of the address behind ``#``, as a link in the page does."""
        self.run("location.hash = arguments[0]", view)

    def run(self, script: str, *given: object) -> Any:
        """What a script in the page gives."""
        return self.driver.execute_script(script, *given)

    def all(self, css: str) -> list[str]:
        """The texts of the elements that are there now."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", css
        )
        return found

    def attribute(self, css: str, name: str) -> str | None:
        """An attribute of the first element; None where there is none."""
        found: str | None = self.run(
            "return document.querySelector(arguments[0])?.getAttribute(arguments[1]) ?? null",
            css,
            name,
        )
        return found

    def values(self, css: str) -> list[Any]:
        """The exact numbers that elements show."""
        script = (
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.dataset.value)"
        )
        return [json.loads(value) for value in self.run(script, css)]

    def shows(self, css: str, text: str = "") -> None:
        """Wait until an element shows a text."""
        until(f"{css} with {text!r}", lambda: any(text in own for own in self.all(css)))

    def click(self, css: str) -> None:
        """Click the first element, as soon as it is there."""
        self.shows(css)
        self.driver.find_element("css selector", css).click()

    def write(self, css: str, text: str) -> None:
        """Type into a field, in the place of what was there."""
        self.shows(css)
        field = self.driver.find_element("css selector", css)
        field.clear()
        field.send_keys(text)

    def choose(self, css: str, value: str) -> None:
        """Choose an option of a field."""
        self.shows(css)
        self.run(
            "const field = document.querySelector(arguments[0]); field.value = arguments[1];"
            "field.dispatchEvent(new Event('change', {bubbles: true}))",
            css,
            value,
        )

    def press(self, *keys: str) -> None:
        """Press keys while no field has the focus."""
        self.run("document.activeElement?.blur()")
        body = self.driver.find_element("css selector", "body")
        body.send_keys(*keys)

    @property
    def tick(self) -> int:
        """The tick of the cursor."""
        return int(self.attribute("#tick", "data-tick") or -1)

    @property
    def hash(self) -> str:
        """The part of the address behind ``#``."""
        return str(self.run("return location.hash"))

    def complaints(self) -> list[str]:
        """What the browser logged since the last call: errors, and what the policy refused."""
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")
        ]


@contextlib.contextmanager
def browsing(profile: Path) -> Iterator[Browser]:
    """A browser of its own, with an empty profile; the test is skipped where there is none."""
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="the page's tests need selenium: pip install '.[dev]'"
    )
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("the page's tests need chromium and chromedriver (Debian: chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        driver.set_page_load_timeout(LONG)
        driver.set_script_timeout(LONG)
        yield Browser(driver)
    finally:
        driver.quit()


@contextlib.contextmanager
def served(*folders: Path, **options: bool) -> Iterator[str]:
    """The address of a page over these folders."""
    stopped = threading.Event()
    with http.listen(_HOST, 0) as sock, Inspection(folders, **options) as site:
        token = new_token()
        thread = threading.Thread(
            target=serve, args=(Inspector(site, token, _HOST), sock, stopped.is_set), name="page"
        )
        thread.start()
        try:
            yield f"{http.address(_HOST, sock)}/{token}/"
        finally:
            stopped.set()
            thread.join(LONG)
