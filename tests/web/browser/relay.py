"""A network that can be cut: UDP between a browser and a server, by way of a socket of ours.

The server's address in its answers is replaced by the relay's, and the browser's own addresses are kept from the server, so
that everything goes through here. Cut, it lets nothing through, in either direction, for ever.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import threading
from typing import Any

_CANDIDATE = re.compile(r"a=candidate:(\S+) (\d+) udp (\d+) (\S+) (\d+) typ host[^\r\n]*", re.IGNORECASE)


class Relay:
    """One path. Its browser is whoever sends first."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self.outside = self._socket()
        self._inside = self._socket()
        self._browser: tuple[str, int] | None = None
        self._cut = threading.Event()
        self._ended = threading.Event()
        self.passed = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @staticmethod
    def _socket() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(("127.0.0.1", 0))
        made.setblocking(False)
        return made

    @property
    def address(self) -> tuple[str, int]:
        return self.outside.getsockname()

    def cut(self) -> None:
        self._cut.set()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(10)

    def _run(self) -> None:
        with selectors.DefaultSelector() as ready, self.outside, self._inside:
            ready.register(self.outside, selectors.EVENT_READ)
            ready.register(self._inside, selectors.EVENT_READ)
            while not self._ended.is_set():
                for key, _ in ready.select(0.1):
                    self._pass(key.fileobj)

    def _pass(self, source: Any) -> None:
        try:
            packet, sender = source.recvfrom(65_536)
            if source is self.outside:
                self._browser = sender
            if self._cut.is_set():
                return
            if source is self.outside:
                self._inside.sendto(packet, self._server)
            elif self._browser is not None:
                self.outside.sendto(packet, self._browser)
            self.passed += 1
        except OSError:
            return  # nothing to be read after all, or nobody there: lost, as packets are


class Network:
    """The network of one page: its signalling, and a relay for each of its peer connections."""

    def __init__(self, page: Any) -> None:
        self.relays: list[Relay] = []
        self.sockets: list[Any] = []
        page.route_web_socket(re.compile(r"/call$"), self._connect)

    def cut(self, *, signalling: bool) -> None:
        """Nothing that goes on now gets through any more; what begins after it does."""
        for relay in self.relays:
            relay.cut()
        if signalling:
            for each in self.sockets:
                each.close()
            self.sockets.clear()

    def close(self) -> None:
        for relay in self.relays:
            relay.close()

    def _connect(self, browser: Any) -> None:
        server = browser.connect_to_server()
        self.sockets.append(browser)

        def to_server(text: str) -> None:
            if json.loads(text).get("type") != "candidate":
                server.send(text)

        def to_browser(text: str) -> None:
            message = json.loads(text)
            if message.get("type") == "answer":
                text = json.dumps({**message, "sdp": self._redirect(message["sdp"])})
            browser.send(text)

        browser.on_message(to_server)
        server.on_message(to_browser)

    def _redirect(self, sdp: str) -> str:
        """Put a new relay in the place of the server's addresses."""
        found = [match for match in _CANDIDATE.finditer(sdp) if match[4] == "127.0.0.1"]
        assert found, f"the server is not to be had on loopback: {sdp}"
        relay = Relay(("127.0.0.1", int(found[0][5])))
        self.relays.append(relay)
        host, port = relay.address
        kept = found[0][0]
        ours = f"a=candidate:{found[0][1]} {found[0][2]} udp {found[0][3]} {host} {port} typ host"
        lines = [line for line in sdp.split("\r\n") if not line.startswith("a=candidate:") or line == kept]
        return "\r\n".join(ours if line == kept else line for line in lines)
