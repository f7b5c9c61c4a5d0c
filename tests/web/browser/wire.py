"""A page's signalling with a hand on it: what the server never said can be said, and what it says can be changed.

The page cannot tell the difference, so it can be brought at once into situations that take a real network minutes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

Change = Callable[[dict[str, Any]], dict[str, Any] | None]
"""What becomes of a message of the server; None: it is not passed on."""


class Wire:
    """The websockets of one page, one after another."""

    def __init__(self, page: Any) -> None:
        self.said: list[dict[str, Any]] = []
        """By the page, on all of them."""
        self.change: Change = lambda message: message
        self.refusals: list[dict[str, Any]] = []
        """The next websockets are closed with these words instead of being let through."""
        self._page = page
        self._browser: Any = None
        page.route_web_socket(re.compile(r"/call(\?.*)?$"), self._connect)

    def tell(self, **message: Any) -> None:
        """Say something to the page in the server's name."""
        self._browser.send(json.dumps(message))

    def event(self, name: str, /, **fields: Any) -> None:
        """Tell the page of a session event."""
        self.tell(type="event", event=name, at=1.0, **fields)

    def heard(self, kind: str) -> list[dict[str, Any]]:
        """What the page has said of a kind."""
        return [message for message in self.said if message["type"] == kind]

    def cut(self) -> None:
        """The websocket is lost."""
        self._browser.close()

    def _connect(self, browser: Any) -> None:
        if self.refusals:
            browser.send(json.dumps({"type": "error", "fatal": True, **self.refusals.pop(0)}))
            browser.close()
            return
        server = browser.connect_to_server()
        self._browser = browser

        def to_server(text: str) -> None:
            self.said.append(json.loads(text))
            server.send(text)

        def to_browser(text: str) -> None:
            message = self.change(json.loads(text))
            if message is not None:
                browser.send(json.dumps(message))

        browser.on_message(to_server)
        server.on_message(to_browser)
