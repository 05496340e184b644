# SPDX-License-Identifier: BSD-3-Clause
"""A headless Chromium that tests drive through its own protocol on two pipes: no package is needed for it."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LIMIT_S = 60.0

_START = """
import fcntl, os, sys
read, write = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(read, 3), os.dup2(write, 4)  # which the protocol wants
os.execv(sys.argv[3], sys.argv[3:])
"""

KEYS = {  # key: (code, number) as the protocol wants them
    "Enter": ("Enter", 13), "Escape": ("Escape", 27), "Tab": ("Tab", 9), "Home": ("Home", 36), "End": ("End", 35),
    "ArrowUp": ("ArrowUp", 38), "ArrowDown": ("ArrowDown", 40), "ArrowLeft": ("ArrowLeft", 37),
    "ArrowRight": ("ArrowRight", 39), "PageUp": ("PageUp", 33), "PageDown": ("PageDown", 34), "/": ("Slash", 191),
    "+": ("Equal", 187), "-": ("Minus", 189), "0": ("Digit0", 48),
}  # fmt: skip


def installed() -> str | None:
    """Return the browser's program, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A browser with one page.

    Attributes:
        complaints: what the page wrote to the console, and errors that it did not catch.
        requests: addresses that the page asked for, but for its own.
    """

    def __init__(self, program: str) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._to = os.pipe()
        self._from, from_write = os.pipe()
        self._process = subprocess.Popen(
            [
                sys.executable, "-c", _START, str(to_read), str(from_write), program,
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
                f"--user-data-dir={self._folder.name}", "about:blank",
            ],
            pass_fds=(to_read, from_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(from_write)
        self._buffer = b""
        self._number = 0
        self.complaints: list[str] = []
        self.requests: list[str] = []
        targets = self._ask("Target.getTargets")["targetInfos"]
        target = next(each for each in targets if each["type"] == "page")
        attached = self._ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session: str | None = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._ask(f"{domain}.enable")

    _session = None

    def close(self) -> None:
        """End the browser."""
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._folder.cleanup()

    def open(self, path: Path, width: int = 1280, height: int = 900, scheme: str = "light") -> float:
        """Show a file and return the seconds until it was loaded and drawn."""
        self.complaints.clear()
        self.requests.clear()
        self.size(width, height)
        self.scheme(scheme)
        started = time.perf_counter()
        self._loaded = False
        self._ask("Page.navigate", url=path.as_uri())
        while not self._loaded:
            self._note(self._receive())
        self.settle()
        return time.perf_counter() - started

    def size(self, width: int, height: int) -> None:
        """Set the size of the window."""
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def scheme(self, name: str) -> None:
        """Set whether the system is light or dark."""
        self._ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.run(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 20))))"
        )

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        found = self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise AssertionError(
                found["exceptionDetails"].get("exception", {}).get("description", str(found))
            )
        return found["result"].get("value")

    def press(self, key: str, shift: bool = False) -> None:
        """Press and release a key."""
        code, number = KEYS.get(key, (f"Key{key.upper()}", ord(key.upper()[0])))
        event: dict[str, Any] = {
            "key": key,
            "code": code,
            "windowsVirtualKeyCode": number,
            "modifiers": 8 * shift,
        }
        text = "\r" if key == "Enter" else key if len(key) == 1 else None
        self._ask(
            "Input.dispatchKeyEvent", type="keyDown", **event, **({} if text is None else {"text": text})
        )
        self._ask("Input.dispatchKeyEvent", type="keyUp", **event)
        self.settle()

    def write(self, text: str) -> None:
        """Type a text."""
        self._ask("Input.insertText", text=text)
        self.settle()

    def click(self, x: float, y: float, times: int = 1) -> None:
        """Click at a place of the window."""
        for kind in ("mousePressed", "mouseReleased") * times:
            self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=times)
        self.settle()

    def drag(self, x: float, y: float, dx: float, dy: float) -> None:
        """Press the button at a place, move, and release it."""
        for kind, at_x, at_y in (
            ("mousePressed", x, y), ("mouseMoved", x + dx / 2, y + dy / 2), ("mouseMoved", x + dx, y + dy),
            ("mouseReleased", x + dx, y + dy),
        ):  # fmt: skip
            self._ask(
                "Input.dispatchMouseEvent", type=kind, x=at_x, y=at_y, button="left", buttons=1, clickCount=1
            )
        self.settle()

    def wheel(self, x: float, y: float, dy: float, control: bool = False) -> None:
        """Turn the wheel at a place."""
        self._ask(
            "Input.dispatchMouseEvent",
            type="mouseWheel",
            x=x,
            y=y,
            deltaX=0,
            deltaY=dy,
            modifiers=2 * control,
        )
        self.settle()

    def hover(self, x: float, y: float) -> None:
        """Move the pointer to a place of the window."""
        self._ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click_on(self, selector: str) -> None:
        """Click at the middle of an element."""
        self.run(
            f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center', behavior: 'instant'}})"
        )
        x, y = self.run(
            f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); "
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        self.click(x, y)

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """Write what the window shows, or the whole page, as PNG."""
        found = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def _ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], LIMIT_S)
            part = os.read(self._from, 1 << 16) if ready else b""
            if not part:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
                raise AssertionError("the browser does not answer")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)  # type: ignore[no-any-return]

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str([each.get("value") for each in params["args"]]))
        elif method == "Log.entryAdded":
            self.complaints.append(str(params["entry"]))
        elif method == "Network.requestWillBeSent" and params.get("type") != "Document":
            self.requests.append(params["request"]["url"])
