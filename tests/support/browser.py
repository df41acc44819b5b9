"""A page in headless Chromium, driven over its debugging socket; nothing but the standard library."""
import base64
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time


def find_browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


class Socket:
    """The client's side of a WebSocket (RFC 6455), texts only."""

    def __init__(self, address, path):
        self.link = socket.create_connection(address, timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.link.sendall((f"GET {path} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nUpgrade: websocket\r\n"
                           f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.rest = b""
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.link.recv(4096)
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        if b" 101 " not in head:
            raise OSError(head.decode(errors="replace"))

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = (struct.pack("!BB", 0x81, 0x80 | size) if size < 126 else
                struct.pack("!BBH", 0x81, 0x80 | 126, size) if size < 65536 else
                struct.pack("!BBQ", 0x81, 0x80 | 127, size))
        self.link.sendall(head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data)))

    def take(self, count):
        while len(self.rest) < count:
            more = self.link.recv(1 << 16)
            if not more:
                raise OSError("the browser is gone")
            self.rest += more
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def receive(self):
        text = b""
        while True:
            first, size = self.take(2)
            size &= 0x7F
            if size >= 126:
                size = int.from_bytes(self.take(2 if size == 126 else 8), "big")
            text += self.take(size)
            if first & 0x80:
                return text.decode()


class Page:
    """One page. Errors of its script and on its console are in `complaints`."""

    def __init__(self, url, width, height=900, dark=False):
        self.folder = tempfile.mkdtemp()
        self.process = subprocess.Popen(
            [find_browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--remote-debugging-port=0", "--disable-background-networking", f"--user-data-dir={self.folder}",
             f"--window-size={width},{height}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket, self.number, self.complaints = self.connect(), 0, []
        self.requests = []  # of anything else than the page itself
        target = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"][0]["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Page", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media="screen",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)

    def connect(self):
        port = pathlib.Path(self.folder) / "DevToolsActivePort"
        for _ in range(600):
            if port.exists() and len(port.read_text().split()) == 2:
                number, path = port.read_text().split()
                return Socket(("127.0.0.1", int(number)), path)
            if self.process.poll() is not None:
                raise OSError(f"the browser ended with {self.process.returncode}")
            time.sleep(0.05)
        raise OSError("the browser does not listen")

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.receive())
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise OSError(f"{method}: {answer['error']}")
                return answer["result"]
            self.hear(answer)

    def hear(self, event):
        kind, told = event.get("method"), event.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.complaints.append(told["exceptionDetails"].get("exception", {}).get("description", "exception"))
        if kind == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning"):
            self.complaints.append(str(told["args"]))
        if kind == "Network.requestWillBeSent" and not told["request"]["url"].startswith(("file:", "data:", "blob:")):
            self.requests.append(told["request"]["url"])
        if kind == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(told["entry"]["text"])

    def run(self, script):
        """The value of an expression in the page, awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise OSError(f"{script}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def wait_for(self, condition, seconds=60):
        end = time.time() + seconds
        while time.time() < end:
            if self.run(condition):
                return
            time.sleep(0.05)
        raise OSError(f"not in {seconds} s: {condition}")

    def mouse(self, kind, x, y):
        button = "none" if kind == "mouseMoved" else "left"
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=0 if button == "none" else 1, clickCount=1)

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 and kind == "keyDown" else "")

    def picture(self, path, whole=False):
        size = self.run("[innerWidth, document.documentElement.scrollHeight]")
        clip = {"clip": {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}} if whole else {}
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole, **clip)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)
