"""One websocket connection to a provider.

Owns: the protocol `Transport` and `connect`, the only place that knows the `websockets` library. Driven by
`pipelines/link.py` and by `models/`. It never reconnects, never reads what it carries, and never logs headers or
contents.

What it makes of `websockets`' defaults (behaviour.md L4, L5; field cases B38–B40): no compression; a limit for incoming
messages set on purpose; outgoing messages checked before they are sent; whatever arrives counts as a sign of life; and
a close handshake that a mute peer cannot draw out.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_websocket
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI, WebSocketException
from websockets.frames import Close
from websockets.protocol import State

from realtime.errors import ArgumentError, LinkLost, ModelError
from realtime.transports.frames import TextFrames

__all__ = [
    "MESSAGE_TOO_LARGE",
    "KeepAlive",
    "PromptTransport",
    "Transport",
    "check_size",
    "connect",
    "is_loopback",
    "redacted",
]

MESSAGE_TOO_LARGE = "message_too_large"
"""Code of the `ModelError` for an outgoing message over the limit; the connection stays (behaviour.md L5)."""

CLOSE_SECONDS = 1.0
"""How long a close handshake may take before the connection is cut (field case B38)."""

MAX_INCOMING_BYTES = 32 * 1024 * 1024
"""Largest message accepted from a provider. Beyond it the connection is closed with 1009 (field case B39)."""

_SILENCE_CHECKS = 5
_OPEN: Final = State.OPEN
_FATAL_STATUS = {400, 401, 403, 404, 405, 410, 422, 426}
_STATUS_CODES = {401: "invalid_api_key", 403: "forbidden", 404: "not_found", 429: "rate_limit_exceeded"}

_tls_contexts: list[ssl.SSLContext] = []

_log = logging.getLogger(__name__)
_quiet = logging.getLogger(__name__ + ".frames")  # websockets prints headers and frames at DEBUG: not through us
_quiet.setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAlive:
    """How a peer is found to be gone that does not say so (field case B40)."""

    ping_seconds: float = 5.0
    """Between two pings. Their answers need not come in time, if anything else does."""
    silence_seconds: float = 20.0
    """A peer from which nothing at all arrived for so long is gone. A busy one that streams, however late its answers to
    pings are, is not."""

    def __post_init__(self) -> None:
        """Check every range."""
        for name in ("ping_seconds", "silence_seconds"):
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
                raise ArgumentError(name, value, "a number of seconds above 0")
        if self.silence_seconds <= self.ping_seconds:
            raise ArgumentError(
                "silence_seconds", self.silence_seconds, f"more than ping_seconds ({self.ping_seconds:g})"
            )


@runtime_checkable
class Transport(Protocol):
    """One connection that carries wire messages, in order, both ways. It ends once and does not come back."""

    async def send(self, data: str | bytes) -> None:
        """Send one wire message, waiting while the socket is backed up.

        Args:
            data: Text or binary.

        Raises:
            ModelError: With code `MESSAGE_TOO_LARGE`; nothing was sent and the connection goes on.
            LinkLost: The connection is gone.
        """
        ...

    async def receive(self) -> str | bytes:
        """Wait for the next wire message. One reader at a time; cancelling loses nothing.

        Raises:
            LinkLost: The connection is gone, whoever ended it and however politely.
        """
        ...

    async def aclose(self) -> None:
        """Close, within a second; the connection is cut if the peer does not answer. Idempotent."""
        ...


@runtime_checkable
class PromptTransport(Transport, Protocol):
    """A transport that can send without waiting, while its socket takes what it is given."""

    @property
    def is_clear(self) -> bool:
        """Whether `send` would send now, without waiting."""
        ...

    def send_at_once(self, data: str | bytes) -> None:
        """As `send`, when `is_clear`. What is given when it is not waits in memory.

        Raises:
            ModelError, LinkLost: As `send`.
        """
        ...


def check_size(data: str | bytes, max_message_bytes: int) -> None:
    """Raise `ModelError` with code `MESSAGE_TOO_LARGE` if a message is larger than the provider takes."""
    # hot path: every outgoing message. Text that could not be too large in any encoding is not encoded to find out
    size = len(data)
    if isinstance(data, str) and size * 4 > max_message_bytes and not data.isascii():
        size = len(data.encode())
    if size > max_message_bytes:
        raise ModelError(
            f"a wire message of {size} bytes is over the provider's limit of {max_message_bytes}",
            code=MESSAGE_TOO_LARGE,
        )


def redacted(text: str, headers: Mapping[str, str]) -> str:
    """A text of a server's without the keys that it was sent: some say them back."""
    for value in headers.values():
        for secret in value.split():
            if len(secret) >= 8:
                text = text.replace(secret, "…")
    return text


def is_loopback(url: str) -> bool:
    """Whether a URL points to this machine."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


async def connect(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeout_seconds: float | None = 10.0,
    max_message_bytes: int = 15_000_000,
    keep_alive: KeepAlive | None = None,
    ssl_context: ssl.SSLContext | None = None,
) -> Transport:
    """Open a websocket.

    Args:
        url: ``wss://…`` (certificate checked), or ``ws://…`` for servers of your own.
        headers: Sent with the opening request. Never logged.
        timeout_seconds: For the opening, name resolution to handshake; None if the caller bounds it.
        max_message_bytes: Largest outgoing message that the provider takes.
        keep_alive: When a peer that says nothing counts as gone; None: the defaults of `KeepAlive`.
        ssl_context: For ``wss://`` with a certificate authority of your own.

    Raises:
        ArgumentError: `url` is no websocket URL.
        ModelError: The server refused in a way that asking again does not change (no such key, no such model).
        LinkLost: It could not be reached, or refused for now.
    """
    scheme, where = _address(url)
    alive = keep_alive or KeepAlive()
    if scheme == "ws" and headers and not is_loopback(url):
        _log.warning("connecting to %s without TLS: its headers can be read on the way", where)
    try:
        connection = await open_websocket(
            url,
            additional_headers=dict(headers or {}),
            compression=None,
            max_size=MAX_INCOMING_BYTES,
            open_timeout=timeout_seconds,
            ping_interval=alive.ping_seconds,
            ping_timeout=None,
            close_timeout=CLOSE_SECONDS,
            logger=_quiet,
            create_connection=_LiveConnection,
            process_exception=lambda error: error,
            proxy=None if is_loopback(url) else True,
            ssl=(ssl_context or await _checked_tls()) if scheme == "wss" else None,
        )
    except InvalidURI:
        raise ArgumentError("url", url, "a ws:// or wss:// URL") from None
    except InvalidStatus as error:
        raise _refusal(error, where, headers or {}) from None
    except TimeoutError:
        waited = "in time" if timeout_seconds is None else f"within {timeout_seconds:g} s"
        raise LinkLost(f"{where} did not answer {waited}") from None
    except ssl.SSLCertVerificationError as error:
        raise ModelError(
            f"the certificate of {where} is not trusted: {error.verify_message}",
            code="certificate_rejected",
            fatal=True,
        ) from error
    except (OSError, InvalidHandshake, EOFError, ConnectionClosed) as error:
        raise LinkLost(f"{where} could not be reached: {error or type(error).__name__}") from error
    assert isinstance(connection, _LiveConnection)
    connection.watch(alive.silence_seconds)
    return _WebSocketTransport(connection, max_message_bytes)


def _address(url: str) -> tuple[str, str]:
    """Scheme and host of a websocket URL, without what stands before an ``@``."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("ws", "wss") and parts.hostname and parts.port != 0:
            return parts.scheme, parts.netloc.rpartition("@")[2]
    except ValueError:  # no host or port that could be
        pass
    raise ArgumentError("url", url, "a ws:// or wss:// URL")


async def _checked_tls() -> ssl.SSLContext:
    """What checks a provider's certificate. Made once, in a thread: reading the system's authorities takes a while."""
    if not _tls_contexts:
        pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="realtime-tls")
        try:
            _tls_contexts.append(await asyncio.get_running_loop().run_in_executor(pool, ssl.create_default_context))
        finally:
            pool.shutdown(wait=False)
    return _tls_contexts[0]


def _refusal(error: InvalidStatus, where: str, headers: Mapping[str, str]) -> ModelError | LinkLost:
    """What an HTTP answer instead of a websocket means."""
    status = error.response.status_code
    body = redacted((error.response.body or b"")[:500].decode("utf-8", "replace").strip(), headers)
    text = f"{where} refused the connection with HTTP {status}" + (f": {body}" if body else "")
    if status in _FATAL_STATUS:
        return ModelError(text, code=_STATUS_CODES.get(status, f"http_{status}"), fatal=True)
    return LinkLost(text)


class _LiveConnection(ClientConnection):
    """A connection that is alive while bytes arrive, whichever they are."""

    gone: str = ""
    is_backed_up = False
    """What was written has not left yet, and is as much as may wait."""
    on_change: Callable[[], None] | None = None
    """Called when it is backed up, when it is so no more, and when it is not open any more."""
    heard_at: float = 0.0
    """When bytes last arrived, on the loop's clock."""
    _last_bytes: int = 0
    _seen_bytes: int = 0
    _silent_checks: int = 0
    _check: asyncio.TimerHandle | None = None
    _interval: float = 0.0

    def watch(self, silence_seconds: float) -> None:
        """Begin to look for signs of life.

        Looked for several times within `silence_seconds`: a loop that was blocked for long counts one look without a
        sign, not all of them.
        """
        self.heard_at = self.loop.time()
        self._interval = silence_seconds / _SILENCE_CHECKS
        self._check = self.loop.call_later(self._interval, self._look)

    def data_received(self, data: bytes) -> None:
        """Count what arrives, then read it."""
        self._seen_bytes += len(data)
        self.heard_at = self.loop.time()
        super().data_received(data)

    def send_data(self) -> None:
        """Write what the protocol has to say: whoever ends it, the peer or we, comes by here."""
        super().send_data()
        if self.protocol.state is not _OPEN:
            self._tell()

    def pause_writing(self) -> None:
        """The socket takes no more for now."""
        self.is_backed_up = True
        super().pause_writing()
        self._tell()

    def resume_writing(self) -> None:
        """The socket takes more again."""
        self.is_backed_up = False
        super().resume_writing()
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        if self._check is not None:
            self._check.cancel()
            self._check = None
        super().connection_lost(exc)
        self._tell()
        self.on_change = None

    def _tell(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def _look(self) -> None:
        # while our own reader is behind nothing is read, so nothing says that the peer is gone
        is_alive = self._seen_bytes != self._last_bytes or not self.transport.is_reading()
        self._last_bytes = self._seen_bytes
        self._silent_checks = 0 if is_alive else self._silent_checks + 1
        if self._silent_checks >= _SILENCE_CHECKS:
            self.gone = f"nothing arrived for {self._interval * _SILENCE_CHECKS:g} s"
            self.transport.abort()
            return
        self._check = self.loop.call_later(self._interval, self._look)


class _WebSocketTransport:
    """A `Transport` over one `_LiveConnection`."""

    def __init__(self, connection: _LiveConnection, max_message_bytes: int) -> None:
        self._connection = connection
        self._max_message_bytes = max_message_bytes
        self._max_characters = max_message_bytes // 4
        """A text so long is within the limit, whatever it says."""
        self._frames = TextFrames()
        self._is_closing = False
        self._is_open = False
        self.is_clear = False
        """Whether the connection is open and its socket takes what it is given. Kept, not asked for: fifty times a second."""
        connection.on_change = self._note
        self._note()

    def _note(self) -> None:
        connection = self._connection
        self._is_open = not self._is_closing and connection.protocol.state is _OPEN
        self.is_clear = self._is_open and not connection.is_backed_up

    async def send(self, data: str | bytes) -> None:
        """Send one wire message."""
        check_size(data, self._max_message_bytes)
        try:
            await self._connection.send(data)
        except (ConnectionClosed, OSError) as error:
            raise self._lost(error) from None

    def send_at_once(self, data: str | bytes) -> None:  # hot path: 50 times a second
        """Send one wire message without waiting."""
        if self._is_open and len(data) <= self._max_characters and not isinstance(data, bytes):
            frame = self._frames.make(data.encode())
            if frame is not None:
                try:
                    self._connection.transport.write(frame)
                except OSError:
                    raise LinkLost("the connection broke off") from None
                return
        self._send_by_library(data)

    def _send_by_library(self, data: str | bytes) -> None:
        """Send what is long or binary, or find that nothing can be sent any more."""
        check_size(data, self._max_message_bytes)
        connection = self._connection
        try:
            if isinstance(data, bytes):
                connection.protocol.send_binary(data)
            else:
                connection.protocol.send_text(data.encode())
            connection.send_data()
        except (WebSocketException, OSError):
            raise LinkLost("the connection broke off") from None

    async def receive(self) -> str | bytes:
        """Wait for the next wire message."""
        try:
            return await self._connection.recv()
        except (ConnectionClosed, OSError) as error:
            raise self._lost(error) from None

    async def aclose(self) -> None:
        """Close, within a second."""
        self._is_closing = True
        self._note()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._connection.close()
        except TimeoutError:
            pass  # a peer that reads nothing: even the close frame does not leave
        finally:
            self._connection.transport.abort()

    def _lost(self, error: ConnectionClosed | OSError) -> LinkLost:
        self._note()
        silent = max(0.0, self._connection.loop.time() - self._connection.heard_at)
        if self._connection.gone:
            return LinkLost(self._connection.gone, silent_seconds=silent)
        if self._is_closing:
            return LinkLost("closed by us", code=1000)
        if isinstance(error, ConnectionClosed):
            if error.rcvd is not None:
                return _closed("the provider closed", error.rcvd)
            if error.sent is not None:
                return _closed("closed on a fault", error.sent, silent_seconds=silent)
        return LinkLost("the connection broke off", silent_seconds=silent)


def _closed(who: str, close: Close, *, silent_seconds: float = 0.0) -> LinkLost:
    reason = f"{who}: {close.reason}" if close.reason else who
    return LinkLost(reason, code=close.code, silent_seconds=silent_seconds)
