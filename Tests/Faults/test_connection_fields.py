"""A `Connection` field may name 64 fields. More are refused before they are compared with anything,
from clients and from backends."""

import json
import socket

from backend import Backend, Seen
from gateway import Gateway

MOST = 64


def members(count: int) -> str:
    return ", ".join(f"x-{number}" for number in range(count))


def test_so_many_members_and_no_more(tmp_path):
    def answer(seen: Seen, sock: socket.socket) -> None:
        count = int(seen.target.removeprefix("/"))
        sock.sendall(f"HTTP/1.1 200 OK\r\nX-1: a\r\nX-Stays: b\r\nConnection: {members(count)}\r\n"
                     "Content-Length: 0\r\n\r\n".encode())

    with Backend(answer) as backend:
        front = Gateway(tmp_path / "gateway", "--tls", "off", "--upstream", backend.url).start()
        front.add_app("demo")
        key = front.add_release()

        def send(target: str, *lines: str, signed: tuple[str, ...] = ()):
            head = key.request("GET", target, fields=[(name, "a") for name in signed])[:-2]
            return front.send(head + "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n")

        assert send("/1", f"Connection: {members(MOST)}", signed=("x-64", "x-stays")).status == 200
        assert {"x-64", "x-stays"} <= {name for name, _ in backend.seen[-1].fields}
        # The last member counts like the first.
        for name in ("x-0", "x-63"):
            assert send("/1", f"Connection: {members(MOST)}", signed=(name,)).status == 400

        for lines in ([f"Connection: {members(MOST + 1)}"], ["Connection: b" + ",b" * 5_000],
                      [f"Connection: {members(40)}", f"Connection: {members(25)}"]):
            refusal = send("/1", *lines)
            assert refusal.status == 400 and json.loads(refusal.body)["code"] == "malformed"
        assert len(backend.seen) == 1

        reply = send(f"/{MOST}")
        assert reply.status == 200 and reply.get("x-stays") == "b" and reply.get("x-1") is None
        failure = send(f"/{MOST + 1}")
        assert failure.status == 502 and json.loads(failure.body)["code"] == "upstream-failed"
        assert front.stop() == 0
