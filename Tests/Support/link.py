"""A TCP proxy on one link between two parts of a deployment, which can be cut, delayed, half-closed or held."""

import contextlib
import socket
import threading

from ports import listening

MODES = ("pass", "cut", "delay", "half-close", "hold")


class Link:
    """Passes bytes on to a port of loopback. `cut` closes connections, and new ones at once; `delay` passes each piece on later, or when the mode ends;
    `half-close` ends the direction to the server, whose answers still come, and drops what the client sends; `hold` passes nothing until
    it is over."""

    def __init__(self, target: int):
        self.target, self.mode, self.delay = target, "pass", 0.0
        self.listener = listening()
        self.port = self.listener.getsockname()[1]
        self.condition = threading.Condition()
        self.pairs: set[tuple[socket.socket, socket.socket]] = set()
        # How many connections were closed or half-closed, and pieces delayed or held, since the mode was set.
        self.touched = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self) -> "Link":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.set("cut")

    def set(self, mode: str, delay: float = 0.0) -> None:
        assert mode in MODES, mode
        with self.condition:
            former, self.mode, self.delay, self.touched = self.mode, mode, delay, 0
            pairs = list(self.pairs)
            self.condition.notify_all()
        if mode == "cut":
            self.touched = sum(end(*pair) for pair in pairs)
        elif mode == "half-close":
            for _, server in pairs:
                with contextlib.suppress(OSError):
                    server.shutdown(socket.SHUT_WR)
                    self.touched += 1
        elif former == "half-close":
            # What was half-closed does not come back; the ends find out, or are told now.
            for pair in pairs:
                end(*pair)

    def turn_to(self, target: int) -> None:
        """Connections go to another server from now on; those to the former one end."""
        self.target = target
        for pair in list(self.pairs):
            end(*pair)

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.mode == "cut":
                self.touched += 1
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for sock in (client, server):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = (client, server)
            with self.condition:
                self.pairs.add(pair)
                if self.mode == "half-close":
                    server.shutdown(socket.SHUT_WR)
                    self.touched += 1
            threads = [threading.Thread(target=self.copy, args=ends, daemon=True)
                       for ends in ((client, server, True), (server, client, False))]
            for thread in threads:
                thread.start()
            threading.Thread(target=self.finish, args=(pair, threads), daemon=True).start()

    def finish(self, pair: tuple[socket.socket, socket.socket], threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join()
        with self.condition:
            self.pairs.discard(pair)
        for sock in pair:
            sock.close()

    def copy(self, source: socket.socket, drain: socket.socket, is_to_server: bool) -> None:
        try:
            while chunk := source.recv(65536):
                if self.mode == "half-close" and is_to_server:
                    continue
                with self.condition:
                    if self.mode in ("delay", "hold"):
                        self.touched += 1
                    while self.mode == "hold":
                        self.condition.wait()
                    self.condition.wait_for(lambda: self.mode != "delay", self.delay)
                drain.sendall(chunk)
            drain.shutdown(socket.SHUT_WR)
        except OSError:
            end(source, drain)


def end(*socks: socket.socket) -> bool:
    for sock in socks:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
    return True
