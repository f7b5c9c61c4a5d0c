"""One file over HTTPS, from the public internet only.

Owns: `Fetch`, one download, and `is_public`, what may be connected to. Synchronous: driven by `pipelines/pictures.py`, in a thread
of its own. With the standard library, so that it needs no extra.

An address that a user, a tool or a saved conversation names is not ours to trust (server-side request forgery): the scheme is
https, every address that the host's name stands for must be public, the connection goes to the address that was looked at and
not to what the name stands for a moment later, and each redirection is looked at in the same way. No proxy, cookie or key is used.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from realtime.errors import LinkLost, UserError

__all__ = ["MAX_FETCH_BYTES", "MAX_FETCH_SECONDS", "Fetch", "is_public"]

MAX_FETCH_BYTES: Final = 10_000_000
MAX_FETCH_SECONDS: Final = 10.0
MAX_REDIRECTS: Final = 3
_CHUNK: Final = 65_536
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OK: Final = 200
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")
"""All of IPv6 that is handed out for the public internet (IANA, IPv6 Global Unicast Address Assignments)."""
_SPECIAL: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "240.0.0.0/4",
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
    )
)
"""Not for the public internet (IANA, Special-Purpose Address Registries); Python 3.11 does not know all of them."""
_UNTYPED: Final = frozenset({"", "application/octet-stream", "binary/octet-stream"})

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_public(address: Address) -> bool:
    """Whether an address is of the public internet, in whatever form it stands for an IPv4 address.

    What the interpreter's own tables know differs between its versions, so what matters is said here as well.
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address not in _GLOBAL_UNICAST or address.teredo is not None:
            return False
    is_special = any(address in network for network in _SPECIAL if network.version == address.version)
    return address.is_global and not address.is_multicast and not is_special


class Fetch:
    """One download of a picture; `run` it in a thread, `abort` it from anywhere."""

    def __init__(
        self,
        url: str,
        *,
        max_bytes: int = MAX_FETCH_BYTES,
        timeout_seconds: float = MAX_FETCH_SECONDS,
        allows: Callable[[Address], bool] = is_public,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Say what is wanted; nothing is connected.

        Args:
            url: ``https://…``.
            max_bytes: The largest that is taken.
            timeout_seconds: For all of it, redirections included.
            allows: What may be connected to.
            tls: For a certificate authority of your own; None: the system's.
        """
        self._url = url
        self._max_bytes = max_bytes
        self._seconds = timeout_seconds
        self._allows = allows
        self._tls = tls
        self._deadline = 0.0
        self._socket: socket.socket | None = None
        self._is_aborted = False

    def run(self) -> bytes:
        """Fetch it.

        Raises:
            UserError: It is not to be had so: not https, not public, too large, not a picture, not there.
            LinkLost: The server could not be reached, or was too slow.
        """
        self._deadline = time.monotonic() + self._seconds
        url = self._url
        for _ in range(MAX_REDIRECTS + 1):
            parts = _checked(url)
            try:
                answer = self._ask(parts)
                try:
                    target = answer.getheader("Location") if answer.status in _REDIRECTS else None
                    if target is None:
                        return self._read(answer, parts)
                finally:
                    self._close(answer)
            except (OSError, HTTPException, ValueError) as error:
                if self._remaining() <= 0:
                    raise LinkLost(f"the picture at {_shown(parts)} was not there within {self._seconds:g} s") from None
                raise LinkLost(f"the picture at {_shown(parts)} could not be fetched: {_words(error)}") from error
            url = _redirected(url, target, parts)
        raise UserError(f"the picture at {_shown(urlsplit(self._url))} was redirected more than {MAX_REDIRECTS} times")

    def abort(self) -> None:
        """Give it up: `run` ends soon, whatever it waits for."""
        self._is_aborted = True
        held = self._socket
        if held is not None:
            try:
                held.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # not connected, or not any more

    def _remaining(self) -> float:
        return 0.0 if self._is_aborted else self._deadline - time.monotonic()

    def _patience(self) -> float:
        left = self._remaining()
        if left <= 0:
            raise TimeoutError("timed out")
        return left

    def _ask(self, parts: SplitResult) -> HTTPResponse:
        host, port = parts.hostname or "", parts.port or 443
        self._socket = plain = self._connect(parts, host, port)
        try:
            plain.settimeout(self._patience())
            tls = self._tls or ssl.create_default_context()
            self._socket = secured = tls.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
            secured.do_handshake()
            return self._request(secured, parts)
        except BaseException:
            self._socket.close()
            plain.close()
            raise

    def _request(self, secured: socket.socket, parts: SplitResult) -> HTTPResponse:
        secured.settimeout(self._patience())
        connection = HTTPConnection(parts.hostname or "", parts.port or 443)
        connection.sock = secured
        path = parts.path or "/"
        headers = {
            "Host": parts.netloc,
            "Accept": "image/*",
            "Accept-Encoding": "identity",
            "User-Agent": "realtime-session",
            "Connection": "close",
        }
        connection.request("GET", f"{path}?{parts.query}" if parts.query else path, headers=headers)
        return connection.getresponse()

    def _connect(self, parts: SplitResult, host: str, port: int) -> socket.socket:
        """Connect to an address that was looked at. All of a name's must be public, or none is tried."""
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
        for address in addresses:
            if not self._allows(address):
                raise UserError(f"the picture at {_shown(parts)} is not on the public internet ({address})")
        error: OSError = OSError(f"{host} has no address")
        for entry in found:
            candidate = socket.socket(entry[0], entry[1])
            try:
                candidate.settimeout(self._patience())
                candidate.connect(entry[4])
            except OSError as refused:
                candidate.close()
                error = refused
            else:
                return candidate
        raise error

    def _read(self, answer: HTTPResponse, parts: SplitResult) -> bytes:
        if answer.status != _OK:
            raise UserError(f"the picture at {_shown(parts)} is not there: HTTP {answer.status}")
        kind = (answer.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        if kind not in _UNTYPED and not kind.startswith("image/"):
            raise UserError(f"what is at {_shown(parts)} is no picture: {kind[:80]}")
        limit = self._max_bytes
        if answer.length is not None and answer.length > limit:
            raise UserError(f"the picture at {_shown(parts)} has {answer.length} bytes; {limit} are taken")
        got: list[bytes] = []
        size = 0
        while True:
            assert self._socket is not None
            self._socket.settimeout(self._patience())
            chunk = answer.read1(_CHUNK)
            if not chunk:
                break
            size += len(chunk)
            if size > limit:
                raise UserError(
                    f"the picture at {_shown(parts)} has more than {limit} bytes, which is all that is taken"
                )
            got.append(chunk)
        if answer.length:
            raise LinkLost(f"the picture at {_shown(parts)} broke off")
        return b"".join(got)

    def _close(self, answer: HTTPResponse) -> None:
        held, self._socket = self._socket, None
        answer.close()
        if held is not None:
            held.close()


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UserError("a picture's address cannot be read: it must be https://host/…") from None
    if parts.scheme.lower() != "https" or not parts.hostname or port == 0 or not url.isascii() or not url.isprintable():
        raise UserError(f"the picture at {_shown(parts)} cannot be fetched: only https:// is, without odd characters")
    if "@" in parts.netloc:
        raise UserError(f"the picture at {_shown(parts)} has a name or a password in its address; that is not sent")
    return parts


def _redirected(url: str, target: str, parts: SplitResult) -> str:
    try:
        return urljoin(url, target)
    except ValueError:
        raise UserError(f"the picture at {_shown(parts)} was redirected to an address that cannot be read") from None


def _shown(parts: SplitResult) -> str:
    """An address without what may be secret in it."""
    return f"{parts.scheme[:8]}://{(parts.netloc.rpartition('@')[2])[:100]}/…"


def _words(error: Exception) -> str:
    return str(error)[:200] or type(error).__name__
