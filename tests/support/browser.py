"""A real browser for tests of pages: Chromium, driven over WebDriver's HTTP interface."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
]  # fmt: skip
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "End": "\ue010", "Home": "\ue011",
        "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}  # fmt: skip


def is_there() -> bool:
    """Whether Chromium and its driver are installed."""
    return shutil.which("chromedriver") is not None and shutil.which("chromium") is not None


class Browser:
    """One window."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"
        self._session = ""

    def begin(self, profile: str) -> None:
        options = {"binary": shutil.which("chromium"), "args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        answer = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{answer['sessionId']}"

    def end(self) -> None:
        if self._session:
            self._ask("DELETE", self._session)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return self._ask(method, self._session + path, body)

    def developer(self, command: str, **parameters: Any) -> Any:
        """A command of the browser's developer tools."""
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, page: Path, width: int = 1200, height: int = 1000, *, dark: bool = False) -> float:
        """Show a page; the seconds until it says that it is ready."""
        begun = time.monotonic()
        self.visit(page.as_uri(), width, height, dark=dark)
        self.wait("return document.body.dataset.ready")
        return time.monotonic() - begun

    def visit(self, address: str, width: int = 1200, height: int = 1000, *, dark: bool = False) -> None:
        """Show what is at an address. It is loaded then."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.developer("Emulation.setEmulatedMedia", features=scheme)
        self.developer(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.ask("POST", "/url", {"url": address})

    def wait(self, script: str, *arguments: Any) -> Any:
        """What the script returns, as soon as that is true."""
        begun = time.monotonic()
        while not (found := self.run(script, *arguments)):
            assert time.monotonic() - begun < 60, f"never true: {script}; the console has {self.errors()}"
            time.sleep(0.02)
        return found

    def run(self, script: str, *arguments: Any) -> Any:
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def press(self, *keys: str) -> None:
        actions = []
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def point(self, x: int, y: int, *, click: bool = False) -> None:
        """Move the mouse to a place of the window."""
        actions: list[dict[str, Any]] = [{"type": "pointerMove", "duration": 0, "x": x, "y": y}]
        if click:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.ask("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def errors(self) -> list[str]:
        """What the console has of warnings and errors since the last call."""
        entries = self.ask("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self) -> bytes:
        return base64.b64decode(self.ask("GET", "/screenshot"))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a fresh profile; it ends with the context."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as profile:
        driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        made = Browser(port)
        try:
            for _ in range(200):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            made.begin(profile)
            yield made
        finally:
            try:
                made.end()
            finally:
                driver.terminate()
                driver.wait(20)
                time.sleep(0.2)  # the browser's last files
