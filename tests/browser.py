"""A real browser for tests: Chromium over its debugging pipe, by the standard library alone.

The pipe (``--remote-debugging-pipe``) carries JSON messages that end with a zero byte; Chromium
reads file descriptor 3 and writes file descriptor 4.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from contextlib import contextmanager

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Browser:
    """One page; messages that nobody waits for are kept in ``events``."""

    def __init__(self, process, to_browser, from_browser):
        self._process, self._out, self._in = process, to_browser, from_browser
        self._rest, self._number, self.events = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = session["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    _session = None

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer["result"]
            self.events.append(answer)

    def _receive(self, seconds=60):
        end = time.monotonic() + seconds
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            chunk = os.read(self._in, 1 << 20) if ready else b""
            if not chunk:
                raise RuntimeError("the browser does not answer")
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, path, *, width, height=900, scheme="light"):
        """Open a file or an address at a width in CSS pixels and wait until it is loaded."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 700,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)
        address = path if isinstance(path, str) else path.resolve().as_uri()
        self.call("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def evaluate(self, expression):
        """Return the value of a JavaScript expression."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        return answer["result"].get("value")

    def screenshot(self, path):
        """Take a picture of the whole page."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def press_tab(self):
        """Move the focus by keyboard."""
        self.press("Tab", 9)

    def press(self, key, code):
        """Press a key that is not a letter, by its name and its virtual code."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def type(self, text):
        """Type text where the focus is."""
        self.call("Input.insertText", text=text)

    def drag(self, start, end):
        """Press the mouse at one point, move to another, release."""
        for kind, (x, y), buttons in (
            ("mousePressed", start, 1),
            ("mouseMoved", end, 1),
            ("mouseReleased", end, 0),
        ):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button="left",
                buttons=buttons,
                clickCount=1,
            )

    @property
    def problems(self):
        """Console messages and exceptions since the page was opened."""
        kinds = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        return [event for event in self.events if event.get("method") in kinds]

    @property
    def requests(self):
        """What was asked for, but for the page itself and data inside it."""
        sent = [e["params"]["request"]["url"] for e in self.events if _is_request(e)]
        return [url for url in sent[1:] if not url.startswith("data:")]


def _is_request(event):
    return event.get("method") == "Network.requestWillBeSent"


@contextmanager
def open_browser(folder):
    """Start Chromium with a new profile in ``folder``; end it, and only it, at the end."""
    child_in, to_browser = os.pipe()
    from_browser, child_out = os.pipe()

    # The child's ends may already be 3 or 4, so both are first moved out of the way.
    script = f'exec 8<&{child_in} 9>&{child_out} 3<&8 4>&9 8<&- 9>&-; exec "$@"'
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(
        ["bash", "-c", script, "bash", *command],
        pass_fds=(child_in, child_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(child_in)
    os.close(child_out)
    try:
        yield Browser(process, to_browser, from_browser)
    finally:
        process.terminate()
        process.wait(timeout=30)
        os.close(to_browser)
        os.close(from_browser)
