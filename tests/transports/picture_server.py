"""A server of pictures over HTTPS on this machine, with a certificate of its own making, that behaves as it is told."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Answer = Callable[[ssl.SSLSocket, str], None]
GIF = b"GIF89a\x02\x00\x01\x00\x00\x00\x00;"


def head(status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def gives(body: bytes, *, kind: str = "image/gif", status: str = "200 OK", **headers: str) -> Answer:
    """An answer with a body."""

    def answer(connection: ssl.SSLSocket, path: str) -> None:
        connection.sendall(head(status, Content_Type=kind, Content_Length=str(len(body)), **headers) + body)

    return answer


def make_certificate(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A certificate for 127.0.0.1 and localhost: what the server shows, and what trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "certificate.pem"
    path.write_bytes(public + secret)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    return server, ssl.create_default_context(cadata=public.decode())


@contextmanager
def picture_server(tls: ssl.SSLContext, answers: dict[str, Answer]) -> Iterator[tuple[str, list[str]]]:
    """Serve in a thread. Gives the address, and the requests as they come."""
    requests: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve(plain: socket.socket) -> None:
        try:
            with tls.wrap_socket(plain, server_side=True) as connection:
                connection.settimeout(30)
                request = b""
                while b"\r\n\r\n" not in request and (got := connection.recv(65_536)):
                    request += got
                if b"\r\n\r\n" not in request:
                    return  # whoever called has gone: another fetch of the same message failed
                requests.append(request.decode())
                path = request.split()[1].decode()
                answers.get(path.partition("?")[0], gives(b"no", kind="text/plain", status="404 Not Found"))(
                    connection, path
                )
        except OSError:
            plain.close()

    def accept() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=serve, args=(plain,), daemon=True))
            threads[-1].start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}", requests
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join(30)
        for thread in threads:
            thread.join(30)
