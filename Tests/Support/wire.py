"""A small, strict HTTP/1.1 peer on raw sockets: it sends bytes exactly as given, and reads one answer at a time."""

import socket
import ssl
from dataclasses import dataclass, field


class Closed(Exception):
    """The peer closed (or reset) the connection where an answer, or the rest of one, was expected."""


@dataclass
class Answer:
    status: int
    fields: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    def get(self, name: str) -> str | None:
        return next((value for key, value in self.fields if key == name.lower()), None)


class Reader:
    """Bytes of a socket, in lines and counts."""

    def __init__(self, sock: socket.socket):
        self.sock, self.buffer = sock, b""

    def more(self) -> None:
        try:
            chunk = self.sock.recv(65536)
        except (ConnectionError, ssl.SSLError) as error:
            raise Closed(str(error)) from error
        if not chunk:
            raise Closed(f"closed after {self.buffer!r:.80}")
        self.buffer += chunk

    def line(self) -> bytes:
        while b"\r\n" not in self.buffer:
            self.more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            self.more()
        part, self.buffer = self.buffer[:count], self.buffer[count:]
        return part

    def head(self) -> tuple[str, list[tuple[str, str]]]:
        start, fields = self.line().decode("latin-1"), []
        while line := self.line().decode("latin-1"):
            name, value = line.split(":", 1)
            fields.append((name.lower(), value.strip()))
        return start, fields

    def chunks(self) -> bytes:
        body = b""
        while size := int(self.line().split(b";")[0], 16):
            body += self.exactly(size)
            assert self.line() == b"", "no line end after a chunk"
        while self.line():
            pass
        return body

    def body(self, fields: list[tuple[str, str]]) -> bytes:
        lengths = [value for name, value in fields if name == "content-length"]
        if any(name == "transfer-encoding" for name, _ in fields):
            assert not lengths, "an answer with both a length and chunks"
            return self.chunks()
        return self.exactly(int(lengths[0])) if lengths else b""


# Source: ip(7). Python's module has no name for it.
IP_BIND_ADDRESS_NO_PORT = 24


class Connection:
    """One connection to a gateway, from an address of 127.0.0.0/8; TLS when a context is given."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None, timeout: float = 20,
                 source: str = "127.0.0.1"):
        self.sock = socket.socket()
        self.sock.settimeout(timeout)
        # The port is chosen when the destination is known: of connections to other ports it may be one in use.
        self.sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        self.sock.bind((source, 0))
        self.sock.connect(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            self.sock = context.wrap_socket(self.sock, server_hostname="127.0.0.1")
        self.reader = Reader(self.sock)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, data: bytes) -> None:
        """Sends everything; a peer that has already refused and closed is found out by `answer`."""
        try:
            self.sock.sendall(data)
        except (ConnectionError, ssl.SSLError):
            pass

    def answer(self, *, to_head: bool = False) -> Answer:
        """The next final answer; interim ones are passed over."""
        while True:
            start, fields = self.reader.head()
            version, status = start.split(" ", 2)[:2]
            assert version == "HTTP/1.1", start
            if int(status) >= 200:
                body = b"" if to_head or status in ("204", "304") else self.reader.body(fields)
                return Answer(int(status), fields, body)

    def interim(self) -> int:
        return int(self.reader.head()[0].split(" ")[1])

    def is_closed(self) -> bool:
        """Whether the peer closes, in order or not, before the time-out."""
        try:
            while self.sock.recv(65536):
                pass
            return True
        except TimeoutError:
            return False
        except (ConnectionError, ssl.SSLError):
            return True
