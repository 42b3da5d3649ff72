"""Other implementations of HTTP/1.1 to compare ours with: three proxies before a backend of their own, and
two parsers.

Each is given the bytes of one connection and says what became of them: `accepts` (nothing was refused),
`refuses` (an error, or the end of the connection before an answer) or `waits` (it wants more bytes).
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess

import h11
import httptools

import processes
from backend import Backend
from ports import listens, reserve_port
from waiting import until

STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r]")


def converse(port: int, data: bytes, silence: float) -> tuple[bytes, bytes, bool]:
    """Sends `data` and reads until the peer closes, or says nothing for `silence` seconds; then ends our
    side, and reads on. Answers what came before that, all that came, and whether the peer closed by
    itself."""
    received, before = b"", None
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        try:
            sock.sendall(data)
        except OSError:
            pass
        sock.settimeout(silence)
        while True:
            try:
                piece = sock.recv(65536)
            except TimeoutError:
                if before is not None:
                    return before, received, False
                before = received
                try:
                    sock.shutdown(socket.SHUT_WR)
                except OSError:
                    return before, received, False
                continue
            except OSError:
                piece = b""
            if not piece:
                return received if before is None else before, received, before is None
            received += piece


def statuses(received: bytes) -> list[int]:
    """The final ones; an answer that does not begin as one is an error page of HTTP/0.9."""
    if received and not STATUS.match(received):
        return [400]
    return [status for status in map(int, STATUS.findall(received)) if status >= 200]


def verdict(received: bytes, closed: bool) -> str:
    """What the bytes say that came before our side was ended."""
    found = statuses(received)
    if any(status >= 400 for status in found):
        return "refuses"
    if found:
        return "accepts"
    return "refuses" if closed else "waits"


class Proxy:
    """A proxy in the foreground, with a configuration and a backend of its own, in a folder of its own."""

    name = ""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder / self.name
        self.folder.mkdir()
        self.backend = Backend()
        self.port = reserve_port()
        self.authority = f"127.0.0.1:{self.port}"
        path = self.folder / "configuration"
        path.write_text(self.configuration())
        with open(self.folder / "output", "wb") as output:
            self.process = processes.start(
                self.command(path), stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        until(lambda: listens(self.port, self.process), f"{self.name} does not listen")

    def configuration(self) -> str:
        raise NotImplementedError

    def command(self, path: pathlib.Path) -> list[str]:
        raise NotImplementedError

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.backend.close()

    def judge(self, data: bytes, silence: float) -> str:
        received, _, closed = converse(self.port, data, silence)
        return verdict(received, closed)


class Nginx(Proxy):
    name = "nginx"

    def configuration(self) -> str:
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        folders = "".join(f"{kind}_temp_path {self.folder}/{kind}; " for kind in kinds)
        user = "user root; " if os.geteuid() == 0 else ""
        return (
            f"daemon off; master_process off; {user}error_log {self.folder}/errors; pid {self.folder}/pid;\n"
            "events { worker_connections 256; }\n"
            f"http {{ access_log off; {folders} server {{ listen {self.authority}; "
            f"location / {{ proxy_pass {self.backend.url}; proxy_http_version 1.1; "
            "proxy_set_header Host $http_host; } } }\n"
        )

    def command(self, path: pathlib.Path) -> list[str]:
        return ["nginx", "-p", str(self.folder), "-c", str(path), "-e", f"{self.folder}/errors"]


class HAProxy(Proxy):
    name = "haproxy"

    def configuration(self) -> str:
        return (
            "global\n maxconn 256\n"
            "defaults\n mode http\n timeout connect 5s\n timeout client 20s\n timeout server 20s\n"
            f"frontend front\n bind {self.authority}\n default_backend back\n"
            f"backend back\n server one 127.0.0.1:{self.backend.port}\n"
        )

    def command(self, path: pathlib.Path) -> list[str]:
        return ["haproxy", "-db", "-f", str(path)]


class Apache(Proxy):
    name = "apache2"

    def configuration(self) -> str:
        modules = "/usr/lib/apache2/modules"
        names = ("mpm_event", "authz_core", "proxy", "proxy_http")
        loads = "".join(f"LoadModule {name}_module {modules}/mod_{name}.so\n" for name in names)
        user = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
        return (
            f"ServerRoot {self.folder}\nServerName localhost\nListen {self.authority}\nPidFile {self.folder}/pid\n"
            f"ErrorLog {self.folder}/errors\nDefaultRuntimeDir {self.folder}\n{user}{loads}"
            "AllowEncodedSlashes NoDecode\nProxyPreserveHost On\n"
            f"ProxyPass / {self.backend.url}/ nocanon\n"
        )

    def command(self, path: pathlib.Path) -> list[str]:
        return ["apache2", "-D", "FOREGROUND", "-f", str(path)]


class H11:
    """The parser of many servers in Python."""

    name = "h11"
    authority = "127.0.0.1:80"

    def judge(self, data: bytes, _: float) -> str:
        connection = h11.Connection(h11.SERVER)
        read = 0
        try:
            connection.receive_data(data)
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    return "accepts" if read else "waits"
                if event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                    return "accepts"
                if isinstance(event, h11.EndOfMessage):
                    read += 1
                    connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                    connection.send(h11.EndOfMessage())
                    if connection.our_state is h11.MUST_CLOSE or connection.their_state is h11.MUST_CLOSE:
                        return "accepts"
                    connection.start_next_cycle()
        except h11.RemoteProtocolError:
            return "refuses"
        except h11.LocalProtocolError:
            return "accepts" if read else "refuses"


class HTTPTools:
    """llhttp, the parser of Node, as Python has it."""

    name = "httptools"
    authority = "127.0.0.1:80"

    def judge(self, data: bytes, _: float) -> str:
        parser = httptools.HttpRequestParser(self)
        self.read, self.is_last = 0, False
        self.parser = parser
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return "accepts"
        except httptools.HttpParserError:
            return "accepts" if self.is_last else "refuses"
        return "accepts" if self.read else "waits"

    def on_message_complete(self) -> None:
        self.read += 1
        self.is_last = not self.parser.should_keep_alive()


def missing() -> str | None:
    return next((name for name in ("nginx", "haproxy", "apache2") if not shutil.which(name)), None)


def requests_in(data: bytes) -> tuple[int, int]:
    """How many requests each of the two parsers finds in what a backend was sent on one connection."""
    tools = HTTPTools()
    # It knows methods by name only.
    assert tools.judge(re.sub(rb"(^|\r\n\r\n)(FOO|QUERY) ", rb"\1GET ", data), 0) in ("accepts", "waits"), data[:200]
    connection, count = h11.Connection(h11.SERVER), 0
    connection.receive_data(data)
    while (event := connection.next_event()) is not h11.NEED_DATA:
        if isinstance(event, h11.EndOfMessage):
            count += 1
            connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
            connection.send(h11.EndOfMessage())
            connection.start_next_cycle()
    return count, tools.read
