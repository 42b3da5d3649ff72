"""A proxy that passes HTTP requests on, byte for byte, and may keep a request or an answer to itself: the client is left without."""

import socket
import threading

from wire import Closed, Reader


class DroppingProxy:
    """Plain HTTP/1.1, one request a connection. `drop(N, where)` keeps the next N answers to requests whose target holds `where`;
    `hold(what, where)` lets one come as far as here, "request" or "answer", and no further."""

    def __init__(self, port: int = 0):
        # May be told later: the server may want to know where this is. 0 is no server: each connection is closed.
        self.upstream = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.left, self.where, self.dropped = 0, "", 0
        self.held: tuple[str, str] | None = None
        self.holds, self.released = threading.Event(), threading.Event()
        self.seen: list[tuple[str, dict[str, str]]] = []
        # Of each request that was answered: its first line, and the port of this end, by which a trace of the server knows it.
        self.ports: list[tuple[str, int]] = []
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self) -> "DroppingProxy":
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()

    def drop(self, count: int, where: str) -> None:
        with self.lock:
            self.left, self.where, self.dropped = count, where, 0

    def hold(self, what: str, where: str) -> None:
        self.holds.clear()
        self.released.clear()
        with self.lock:
            self.held = (what, where)

    def is_held(self, what: str, line: str) -> bool:
        """Whether that is the one to hold, and then does, until it is released: it goes no further after that either."""
        with self.lock:
            if self.held is None or self.held[0] != what or self.held[1] not in line:
                return False
            self.held = None
        self.holds.set()
        self.released.wait(60)
        return True

    def accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock: socket.socket) -> None:
        with sock:
            reader = Reader(sock)
            try:
                line, fields = reader.head()
                body = reader.body(fields)
                if self.is_held("request", line) or not self.upstream:
                    return
                with socket.create_connection(("127.0.0.1", self.upstream), 20) as upstream:
                    head = "\r\n".join([line, *(f"{name}: {value}" for name, value in fields), "Connection: close"])
                    upstream.sendall(head.encode("latin-1") + b"\r\n\r\n" + body)
                    answer, port = b"", upstream.getsockname()[1]
                    while chunk := upstream.recv(65536):
                        answer += chunk
            except Closed:
                return
            with self.lock:
                self.seen.append((line, dict(fields)))
                self.ports.append((line, port))
                is_dropped = self.left > 0 and self.where in line
                if is_dropped:
                    self.left, self.dropped = self.left - 1, self.dropped + 1
            if not is_dropped and not self.is_held("answer", line):
                sock.sendall(answer)

    def copies(self, where: str) -> list[dict[str, str]]:
        """The fields of each request whose target holds that."""
        with self.lock:
            return [fields for line, fields in self.seen if where in line]
