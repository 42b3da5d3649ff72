"""Large bodies stream: the right digest arrives, memory stays flat, and an altered body is never complete."""

import base64
import hashlib
import json
import socket
import threading

import pytest

from backend import Backend, Seen
from gateway import Gateway
from signing import digest
from wire import Closed, Reader

MIB = 1 << 20
FLAT = 16 * MIB
# A piece with no period of two, and as quick to make as to copy.
PIECE = bytes(range(251)) * (MIB // 251 + 1)
PIECE = PIECE[:MIB]


def digest_of(pieces: int, last: bytes = PIECE) -> str:
    sha = hashlib.sha256()
    for index in range(pieces):
        sha.update(last if index == pieces - 1 else PIECE)
    return f"sha-256=:{base64.b64encode(sha.digest()).decode()}:"


class Sink(Backend):
    """Reads a body as it comes, keeps its digest and size only; serves `/download/N` of N MiB."""

    def __init__(self):
        self.digest, self.size, self.is_complete, self.done = "", 0, False, threading.Event()
        super().__init__(reads_bodies=False)

    def serve(self, sock: socket.socket) -> None:
        reader = Reader(sock)
        try:
            while True:
                start, fields = reader.head()
                seen = Seen(start, fields, b"")
                self.seen.append(seen)
                self.transfer(seen, reader, sock)
        except (Closed, OSError):
            self.done.set()
        finally:
            sock.close()

    def transfer(self, seen: Seen, reader, sock) -> None:
        if seen.method == "GET":
            pieces = int(seen.target.rsplit("/", 1)[1])
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (pieces * MIB))
            for _ in range(pieces):
                sock.sendall(PIECE)
            return
        left, sha = int(seen.get("content-length")), hashlib.sha256()
        self.size, self.is_complete = 0, False
        while left:
            if not reader.buffer:
                reader.more()
            part, reader.buffer = reader.buffer[:left], reader.buffer[left:]
            sha.update(part)
            left -= len(part)
            self.size += len(part)
        self.digest, self.is_complete = sha.hexdigest(), True
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


class Memory:
    """Samples the server's resident size until told to stop."""

    def __init__(self, gateway: Gateway):
        self.gateway, self.samples, self.stopped = gateway, [gateway.rss()], threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        while not self.stopped.wait(0.01):  # lint: the pace of a load
            self.samples.append(self.gateway.rss())

    def stop(self) -> int:
        """Stops, and returns how far apart the samples are."""
        self.stopped.set()
        self.thread.join()
        assert len(self.samples) > 3, "too quick to say anything of memory"
        return max(self.samples) - min(self.samples)


@pytest.fixture(scope="module", params=["tls", "plain"])
def streaming(request, tmp_path_factory, note):
    options = ("--tls", "off") if request.param == "plain" else ()
    sink = Sink()
    with sink, Gateway(tmp_path_factory.mktemp("stream"), *options, "--upstream", sink.url) as running:
        running.add_app("demo")
        running.key, running.sink = running.add_release(), sink
        running.note = lambda what, grown: note(f"{what}, {request.param}: memory moved by {grown / MIB:.2f} MiB")
        # Warm: what is allocated once, at the first large body, is not growth.
        upload(running, 4)
        yield running


def upload(gateway, pieces: int, last: bytes = PIECE, said: str | None = None):
    head = gateway.key.head("PUT", "/upload", body_digest=said or digest_of(pieces),
                            length=f"Content-Length: {pieces * MIB}")
    with gateway.connect(timeout=60) as connection:
        connection.send(head)
        for index in range(pieces):
            connection.send(last if index == pieces - 1 else PIECE)
        return connection.answer()


@pytest.fixture(scope="module")
def size(is_long) -> int:
    """MiB of a large body."""
    return 1024 if is_long else 64


def test_an_upload(streaming, size):
    memory = Memory(streaming)
    answer = upload(streaming, size)
    grown = memory.stop()
    assert answer.status == 200, answer
    expected = hashlib.sha256()
    for _ in range(size):
        expected.update(PIECE)
    assert (streaming.sink.size, streaming.sink.digest) == (size * MIB, expected.hexdigest())
    streaming.note(f"upload of {size} MiB", grown)
    assert grown <= FLAT, f"grew by {grown / MIB:.1f} MiB"


def test_an_altered_upload_is_never_complete(streaming, size):
    """The last byte is another: the backend's request is cut off, and what was held back never arrives."""
    streaming.sink.done.clear()
    altered = PIECE[:-1] + bytes([PIECE[-1] ^ 1])
    answer = upload(streaming, size // 4, last=altered, said=digest_of(size // 4))
    assert (answer.status, json.loads(answer.body)["code"]) == (400, "body-mismatch")
    assert streaming.sink.done.wait(60), "the backend's connection stays open"
    assert not streaming.sink.is_complete
    assert 0 < streaming.sink.size < size // 4 * MIB


def test_a_short_upload_is_never_complete(streaming):
    """The client goes away half-way."""
    streaming.sink.done.clear()
    head = streaming.key.head("PUT", "/upload", body_digest=digest_of(8), length=f"Content-Length: {8 * MIB}")
    with streaming.connect() as connection:
        connection.send(head + PIECE * 4)
    assert streaming.sink.done.wait(60)
    assert not streaming.sink.is_complete


def test_a_download(streaming, size):
    memory, sha, left = Memory(streaming), hashlib.sha256(), size * MIB
    with streaming.connect(timeout=60) as connection:
        connection.send(streaming.key.request("GET", f"/download/{size}"))
        start, fields = connection.reader.head()
        assert " 200 " in start
        assert dict(fields)["content-length"] == str(left)
        while left:
            part = connection.reader.buffer or connection.sock.recv(1 << 18)
            connection.reader.buffer = b""
            assert part, "cut off"
            sha.update(part)
            left -= len(part)
    grown = memory.stop()
    expected = hashlib.sha256()
    for _ in range(size):
        expected.update(PIECE)
    assert sha.hexdigest() == expected.hexdigest()
    streaming.note(f"download of {size} MiB", grown)
    assert grown <= FLAT, f"grew by {grown / MIB:.1f} MiB"


def test_slow_readers_do_not_grow_it(streaming):
    """Eight clients ask for 64 MiB each, and read nothing: the gateway stops reading from the backend."""
    readers = []
    memory = Memory(streaming)
    for _ in range(8):
        connection = streaming.connect()
        connection.send(streaming.key.request("GET", "/download/64"))
        readers.append(connection)
    # In the same time another reader gets half of what they asked for.
    with streaming.connect() as connection:
        connection.send(streaming.key.request("GET", "/download/256"))
        left = 256 * MIB
        while left > 0:
            left -= len(connection.sock.recv(1 << 18)) or pytest.fail("cut off")
    grown = memory.stop()
    for connection in readers:
        assert connection.sock.recv(16), "it was not being served"
        connection.sock.close()
    streaming.note("eight readers that read nothing", grown)
    assert grown <= FLAT, f"grew by {grown / MIB:.1f} MiB"


def test_a_slow_backend_does_not_grow_it(tmp_path):
    """A backend that reads nothing holds the client back, too."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        upstream = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with Gateway(tmp_path, "--upstream", upstream, "--deadline-drain", 1) as gateway:
            gateway.add_app("demo")
            key = gateway.add_release()
            memory, sent = Memory(gateway), 0
            with gateway.connect(timeout=2) as connection:
                connection.sock.sendall(key.head("PUT", "/u", body_digest=digest(b"x"), length=f"Content-Length: {512 * MIB}"))
                try:
                    while sent < 512 * MIB:
                        connection.sock.sendall(PIECE)
                        sent += MIB
                except TimeoutError:
                    pass
            assert sent < 64 * MIB, "nothing held the client back"
            assert memory.stop() <= FLAT
