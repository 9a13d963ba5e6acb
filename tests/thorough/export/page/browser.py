"""A headless Chromium driven over its DevTools protocol: open a page, run its script, see what it logs and requests."""

import base64
import contextlib
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PATIENCE = 60.0


def found() -> str | None:
    """Return the path of a Chromium, or ``None``."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Tab:
    """An open page.

    Attributes:
        errors: what its console reported as errors, and exceptions that nothing caught.
        requests: addresses that it asked for.
    """

    def __init__(self, socket: Any) -> None:
        self._socket, self._count = socket, 0
        self.errors: list[str] = []
        self.requests: list[str] = []
        for domain in ("Runtime", "Page", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, seconds: float = _PATIENCE, **arguments: Any) -> dict[str, Any]:
        """Return the answer to a command of the protocol."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": arguments}))
        end = time.monotonic() + seconds
        while True:
            message = json.loads(self._socket.recv(timeout=max(end - time.monotonic(), 0.01)))
            if message.get("id") == self._count:
                assert "error" not in message, message["error"]
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        params, method = message.get("params", {}), message.get("method")
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(json.dumps(params["args"])[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def run(self, script: str, seconds: float = _PATIENCE) -> Any:
        """Return the value of an expression, awaited, as plain data."""
        answer = self.call(
            "Runtime.evaluate", seconds, expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, json.dumps(answer["exceptionDetails"])[:1000]
        return answer["result"].get("value")

    def open(self, file: Path, seconds: float = _PATIENCE) -> None:
        """Open a page from a file and wait until it can compute."""
        self.call("Page.navigate", url=file.resolve().as_uri())
        end = time.monotonic() + seconds
        while not self.run("document.body !== null && document.body.classList.contains('ready')"):
            text = self.run("document.getElementById('message')?.textContent || ''")
            assert not text, text
            assert time.monotonic() < end, f"{file} is not ready after {seconds} s: {self.errors}"
            time.sleep(0.1)

    def picture(self, file: Path) -> None:
        """Write a picture of the page to a PNG."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextlib.contextmanager
def opened(width: int = 1240, height: int = 900, webgl: bool = True) -> Iterator[Tab]:
    """Start a Chromium without windows and network, with WebGL on the processor or without, and give its tab."""
    from websockets.sync.client import connect

    binary = found()
    assert binary is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless=new", "--no-sandbox", "--remote-debugging-port=0", "--no-first-run"]
        drawing = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        options += drawing if webgl else ["--disable-gpu", "--disable-3d-apis"]
        options += [f"--user-data-dir={profile}", f"--window-size={width},{height}", "--mute-audio"]
        options += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        process = subprocess.Popen(
            [binary, *options, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            port = _port(Path(profile), process)
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"http://127.0.0.1:{port}/json/list", timeout=_PATIENCE) as answer:
                tabs = json.load(answer)
            address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
            with connect(address, max_size=None, proxy=None, open_timeout=_PATIENCE) as socket:
                yield Tab(socket)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _port(profile: Path, process: subprocess.Popen) -> int:
    """Return the port that the browser listens at."""
    end = time.monotonic() + _PATIENCE
    file = profile / "DevToolsActivePort"
    while time.monotonic() < end and process.poll() is None:
        if file.exists() and (lines := file.read_text().splitlines()):
            return int(lines[0])
        time.sleep(0.05)
    raise AssertionError(f"Chromium did not start (exit code {process.poll()})")
