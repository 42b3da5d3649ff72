"""A backend that records every byte it receives, and responds as a test specifies."""

import socket
import threading
from collections.abc import Callable

from ports import listening
from waiting import until
from wire import Closed, Reader


class Seen:
    """One request as the backend read it."""

    def __init__(self, start: str, fields: list[tuple[str, str]], body: bytes):
        self.method, self.target, self.version = start.split(" ")
        self.fields, self.body = fields, body

    def get(self, name: str) -> str | None:
        values = [value for key, value in self.fields if key == name]
        assert len(values) < 2, f"{name} reached the backend {len(values)} times"
        return values[0] if values else None


def ok(seen: Seen, sock: socket.socket) -> None:
    """The usual answer: 200 with the length of the body it got."""
    text = f"{seen.method} {seen.target} {len(seen.body)}\n".encode()
    body = b"" if seen.method == "HEAD" else text
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(text) + body)


class ReadsAndCloses:
    """Answers the first request of each connection, and closes without a word once it has read the second one."""

    def __init__(self):
        self.answered: set[int] = set()

    def __call__(self, seen: Seen, sock: socket.socket) -> None:
        if id(sock) in self.answered:
            raise Closed
        self.answered.add(id(sock))
        ok(seen, sock)


class Backend:
    """Listens on a port of its own. `answer(seen, socket)` may do anything, and ends the connection by raising
    `Closed`; `raw` holds all the bytes of each connection, in order, whether or not they made a request."""

    def __init__(self, answer: Callable[[Seen, socket.socket], None] = ok, *, reads_bodies: bool = True,
                 port: int = 0):
        self.answer, self.reads_bodies = answer, reads_bodies
        self.raw: list[bytearray] = []
        self.seen: list[Seen] = []
        self.lock = threading.Lock()
        self.listener = listening(port)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.open: set[socket.socket] = set()
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self) -> "Backend":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        # Closed alone it would take one more connection: the thread that waits in accept holds it open.
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.cut()

    def cut(self) -> None:
        """Cuts every connection, like a backend that restarts."""
        for sock in list(self.open):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            # Otherwise a second write waits until the peer has acknowledged the first.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock: socket.socket) -> None:
        record = bytearray()
        with self.lock:
            self.raw.append(record)
            self.open.add(sock)
        reader = Recording(sock, record)
        try:
            while True:
                start, fields = reader.head()
                if reader.get(fields, "expect"):
                    sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = reader.body(fields) if self.reads_bodies else b""
                seen = Seen(start, fields, body)
                with self.lock:
                    self.seen.append(seen)
                self.answer(seen, sock)
        except (Closed, OSError):
            pass
        finally:
            self.open.discard(sock)
            sock.close()

    def bytes(self) -> int:
        return sum(len(record) for record in self.raw)

    def wait(self, count: int, seconds: float = 5) -> list[Seen]:
        """The requests it has read, once there are `count`."""
        until(lambda: len(self.seen) >= count)
        return self.seen


class Recording(Reader):
    """A reader that also keeps what it read."""

    def __init__(self, sock: socket.socket, record: bytearray):
        super().__init__(sock)
        self.record = record

    def more(self) -> None:
        before = len(self.buffer)
        super().more()
        self.record += self.buffer[before:]

    @staticmethod
    def get(fields: list[tuple[str, str]], name: str) -> str | None:
        return next((value for key, value in fields if key == name), None)
