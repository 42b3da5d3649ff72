"""Requests that need not wait are served by callbacks, all others by a task. Two gateways, one with the
callbacks and one without (`--tasks-alone`), get the same random requests: valid, altered, replayed, oddly framed, split, pipelined, and in front
of a backend that cuts its connections at every point. Their responses are equal to the byte, except for what is random or tells
the time, and so is what their backends receive.

COUNTERSIGN_LONG=1 sends 100,000 requests, otherwise a few thousand."""

import concurrent.futures
import hmac
import itertools
import os
import random
import re
import socket
import time

import pytest

from backend import Backend, Seen
from gateway import Gateway
from serving_paths import PATHS, options_of
from sockets import is_established, is_read
from signing import ReleaseKey
from waiting import until
from wire import Closed

# How often a conversation is played until the two paths agree: a backend that cuts its connections meets the same conversation
# by chance a second time.
ATTEMPTS = 3
REQUESTS = 100_000 if os.environ.get("COUNTERSIGN_LONG") else 3_000
AUTHORITY = "shop.example"
SECRET = "the secret of both gateways, as text"
# The backends' connections that end although the gateway has reason to keep them.
DYING: set[tuple] = set()


class TextKey(ReleaseKey):
    """An imported secret is its text."""

    def sign(self, base: bytes) -> bytes:
        return hmac.digest(self.secret.encode(), base, "sha256")


# What the responses have of the time, of chance and of the event.
VARIABLE = [
    (re.compile(rb"(?im)^(date|signature|signature-input|accept-signature|countersign-event|retry-after): .*$"), rb"\1: *"),
    # Of a refusal, whose body has the event.
    (re.compile(rb"(?im)^content-digest: .*$"), b"Content-Digest: *"),
    (re.compile(rb'"(instance|event)":"[^"]*"'), rb'"\1":"*"'),
    (re.compile(rb"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"), b"TIME"),
    (re.compile(rb"\b\d+ s (ago|ahead)"), rb"N s \1"),
    (re.compile(rb'"time":\d+'), rb'"time":N'),
    (re.compile(rb"127\.0\.0\.1:\d+"), b"BACKEND"),
]


def answer(seen: Seen, sock: socket.socket) -> None:
    """What the backend does, as the first segment of the path says."""
    kind = seen.target.split("?")[0].split("/")[1]
    text = f"{seen.method} {seen.target} {len(seen.body)}\n".encode()
    body = b"" if seen.method == "HEAD" else text
    usual = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Kind: %s\r\nContent-Length: %d\r\n\r\n" % (kind.encode(), len(text)) + body
    if kind == "empty":
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    elif kind in ("204", "304"):
        sock.sendall(b"HTTP/1.1 %s Nothing\r\nX-A: 1\r\n\r\n" % kind.encode())
    elif kind == "404":
        sock.sendall(b"HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n" + (b"" if seen.method == "HEAD" else b"no"))
    elif kind == "chunks":
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"" if seen.method == "HEAD" else b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"))
    elif kind == "close":
        sock.sendall(b"HTTP/1.1 200 OK\r\n\r\nuntil the end" if seen.method != "HEAD" else b"HTTP/1.1 200 OK\r\n\r\n")
        raise Closed
    elif kind == "says-close":
        sock.sendall(usual.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
        raise Closed
    elif kind == "dies-idle":
        DYING.add((sock.getpeername(), sock.getsockname()))
        sock.sendall(usual)
        raise Closed
    elif kind == "large":
        size = 100_000
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + (b"" if seen.method == "HEAD" else bytes(size)))
    elif kind.startswith("full"):
        # As long as a buffer, or a little less: with the fields that the gateway adds it does not fit.
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
        size = int(kind[4:]) - len(head % 65_400)
        sock.sendall(head % size + (b"" if seen.method == "HEAD" else b"f" * size))
    elif kind == "split":
        for index in range(0, len(usual), 7):
            sock.sendall(usual[index:index + 7])
            if index % 70 == 0:
                until(lambda: is_read(sock), "the gateway reads")
    elif kind == "interim":
        sock.sendall(b"HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n" + usual)
    elif kind == "silent":
        raise Closed
    elif kind == "cut-head":
        sock.sendall(usual[:40])
        raise Closed
    elif kind == "cut-body":
        sock.sendall(usual[:-5] if body else usual[:-2])
        raise Closed
    elif kind == "more":
        DYING.add((sock.getpeername(), sock.getsockname()))
        sock.sendall(usual + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        raise Closed
    elif kind == "garbage":
        sock.sendall(b"ICY 200 OK\r\n\r\n")
        raise Closed
    elif kind == "two-lengths":
        sock.sendall(usual.replace(b"\r\n\r\n", b"\r\nContent-Length: 1\r\n\r\n", 1))
        raise Closed
    elif kind == "wide":
        sock.sendall(b"HTTP/1.1 200 OK\r\nX-Wide: %s\r\nContent-Length: 2\r\n\r\n" % (b"w" * 40_000) + (b"" if seen.method == "HEAD" else b"ok"))
    else:
        sock.sendall(usual)


KINDS = ["usual"] * 12 + ["empty", "204", "304", "404", "chunks", "close", "says-close", "large", "split", "interim", "silent",
                         "cut-head", "cut-body", "garbage", "two-lengths", "wide", "full65480", "full65500", "full65510", "full65536", "full65540"]
# Leave a connection that ends in the gateway's pool. Played one at a time: whether another request gets that connection before its
# end has arrived is chance.
DYING_KINDS = ["usual", "usual", "dies-idle", "dies-idle", "more"]


class Plan:
    """One connection: its source address, the bytes to send with the places where to pause, and the number of requests."""

    def __init__(self, number: int, key: ReleaseKey, seed: float):
        self.seed, draw = seed, random.Random(seed)
        self.number, self.draw, self.key = number, draw, key
        self.source = f"127.{1 + number // 62_500}.{1 + number // 250 % 250}.{1 + number % 250}"
        self.is_alone = draw.random() < 0.1
        self.is_pipelined = not self.is_alone and draw.random() < 0.15
        self.messages: list[list[bytes]] = []
        self.keyed: list[tuple[str, str, bytes, list[tuple[str, str]]]] = []
        self.methods: list[str] = []
        previous: bytes | None = None
        for index in range(draw.choice([1, 1, 2, 3, 6])):
            method = draw.choice(["GET"] * 8 + ["HEAD", "POST", "POST", "POST", "PUT", "DELETE", "OPTIONS"])
            target = f"/{draw.choice(DYING_KINDS if self.is_alone else KINDS)}/{number}-{index}" + draw.choice(["", "", "?a=b", "?a=%20&b=c&sign=1"])
            message = self.message(method, target)
            if previous and draw.random() < 0.05:
                message = previous
            elif draw.random() < 0.12:
                message = self.altered(message)
            previous = message
            self.methods.append(message.split(b" ", 1)[0].decode("latin-1"))
            self.messages.append(self.split(message))

    def message(self, method: str, target: str) -> bytes:
        draw = self.draw
        if self.keyed and draw.random() < 0.2:
            # A copy of a request with an Idempotency-Key, signed anew.
            return self.key.request(*self.keyed[-1][:3], fields=self.keyed[-1][3])
        fields = []
        if draw.random() < 0.3:
            fields.append(("Content-Type", draw.choice(["application/json", "application/x-www-form-urlencoded", "text/plain"])))
        if draw.random() < 0.2:
            fields.append(("X-Note", "n" * draw.choice([1, 30, 3_000])))
        if method in ("POST", "PUT", "DELETE") and draw.random() < 0.2:
            fields.append(("Idempotency-Key", f"key-{self.number}-{draw.random()}"))
        body = b""
        if method in ("POST", "PUT") and draw.random() < 0.85:
            body = draw.randbytes(draw.choice([1, 20, 512, 5_000, 70_000]))
        options = {}
        if draw.random() < 0.03:
            options["created"] = int(time.time()) - 3_600
        chance = draw.random()
        if body and chance < 0.15:
            chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [body[:7], body[7:]] if part) + b"0\r\n\r\n"
            return self.key.head(method, target, body=body, fields=fields, length="Transfer-Encoding: chunked", **options) + chunks
        if "Idempotency-Key" in dict(fields):
            self.keyed.append((method, target, body, fields))
        message = self.key.request(method, target, body, fields=fields, **options)
        if chance > 0.97:
            message = message.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n", 1)
        if chance < 0.05:
            message = message.replace(b"\r\n\r\n", b"\r\nAccept: */*\r\nUser-Agent: test\r\nCookie: a=b\r\n\r\n", 1)
        return message

    def altered(self, message: bytes) -> bytes:
        draw = self.draw
        head, _, body = message.partition(b"\r\n\r\n")
        if draw.random() < 0.4:
            return draw.choice([
                head.replace(b"Host: ", b"Host : ", 1), head.replace(b"\r\nHost:", b"\r\nhost: x\r\nHost:", 1),
                head.replace(b"HTTP/1.1", b"HTTP/1.0", 1), head.replace(b"HTTP/1.1", b"HTTP/2.0", 1),
                head.replace(b" /", b"  /", 1), head.replace(b"\r\n", b"\n", 1), head + b"\r\nContent-Length: 3",
                head + b"\r\nTransfer-Encoding: chunked", head + b"\r\n folded", head + b"\r\nX-\x00: 1", head + b"\r\nConnection: close",
                head + b"\r\nConnection: signature", head + b"\r\nX_Under: 1", head.replace(b" /", f" http://{AUTHORITY}/".encode(), 1),
                b"\r\n" + head, head.replace(b'keyid="', b'keyid="un', 1), head.replace(b"Signature: app", b"Signature: bpp", 1),
            ]) + b"\r\n\r\n" + body
        place = draw.randrange(len(head) - 4)
        changed = bytes([draw.choice(b"aZ0 \t:;\"\r\n%\xff\x7f")])
        return head[:place] + changed + head[place + 1:] + b"\r\n\r\n" + body

    def split(self, message: bytes) -> list[bytes]:
        draw = self.draw
        if draw.random() < 0.6:
            return [message]
        places = sorted(draw.randrange(1, len(message)) for _ in range(draw.choice([1, 1, 2, 5])))
        return [message[start:end] for start, end in zip([0, *places], [*places, len(message)], strict=True)]


def converse(plan: Plan, port: int) -> list[bytes]:
    """The responses that come, normalised; the last entry is `closed` if the connection was closed before the last one."""
    responses: list[bytes] = []
    with socket.create_connection(("127.0.0.1", port), 20, source_address=(plan.source, 0)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        rest = b""
        try:
            if plan.is_pipelined:
                sock.sendall(b"".join(part for message in plan.messages for part in message))
            for method, message in zip(plan.methods, plan.messages, strict=True):
                if not plan.is_pipelined:
                    for part in message:
                        sock.sendall(part)
                        if len(message) > 1:
                            until(lambda: is_read(sock), "the gateway reads")
                while True:
                    response, rest = read_response(sock, rest, method)
                    responses.append(response)
                    if not response.startswith(b"HTTP/1.1 1"):
                        break
                if plan.is_alone:
                    wait_for_ends()
        except (Closed, ConnectionError, BrokenPipeError):
            responses.append(b"closed")
        except TimeoutError:
            # An altered length leaves the gateway waiting for more.
            responses.append(b"waits")
    return responses


def wait_for_ends() -> None:
    """Until the gateway's kernel knows what the backend closed: whether a request gets such a connection before is chance."""
    until(lambda: not any(is_established(*ends) for ends in DYING), "the connection ends")
    DYING.clear()


CLOSE = b"\r\nConnection: close"


def agree(plan: Plan, first: list[bytes], second: list[bytes]) -> bool:
    """Whether both conversations are the same. A refused request whose body has arrived leaves the connection open, and one
    whose body is still to come closes it: which of them it is, is chance."""
    if first == second:
        return True
    for message, one, other in zip(plan.messages, first, second, strict=False):
        if one == other:
            continue
        has_body = not b"".join(message).endswith(b"\r\n\r\n") or plan.is_pipelined
        return has_body and one.split(b" ")[1] >= b"400" and one.replace(CLOSE, b"", 1) == other.replace(CLOSE, b"", 1)
    return False


def tell(plan: Plan, first: list[bytes], second: list[bytes]) -> None:
    """Prints the first response in which both conversations differ."""
    for sent, one, other in zip(plan.messages, first, second, strict=False):
        if one != other:
            print(f"sent {b''.join(sent)[:1_500]!r}\non:  {one[:1_200]!r}\noff: {other[:1_200]!r}")
            return
    print(f"{len(first)} and {len(second)} responses: {first[-1][:200]!r}, {second[-1][:200]!r}")


def read_response(sock: socket.socket, rest: bytes, method: str) -> tuple[bytes, bytes]:
    def more() -> bool:
        nonlocal rest
        sock.settimeout(4)
        part = sock.recv(65_536)
        rest += part
        return bool(part)

    while b"\r\n\r\n" not in rest:
        if not more():
            raise Closed
    head, _, rest = rest.partition(b"\r\n\r\n")
    status = head.split(b" ")[1]
    body = b""
    if method != "HEAD" and not status.startswith(b"1") and status not in (b"204", b"304"):
        length = re.search(rb"(?im)^content-length: (\d+)", head)
        if length:
            while len(rest) < int(length[1]) and more():
                pass
            body, rest = rest[:int(length[1])], rest[int(length[1]):]
        elif re.search(rb"(?im)^transfer-encoding: chunked", head):
            while b"0\r\n\r\n" not in rest and more():
                pass
            place = rest.find(b"0\r\n\r\n")
            body, rest = (rest, b"") if place < 0 else (unchunked(rest[:place]), rest[place + 5:])
        else:
            while more():
                pass
            body, rest = rest, b""
    text = head + b"\r\n\r\n" + body
    for pattern, replacement in VARIABLE:
        text = pattern.sub(replacement, text)
    return text, rest


def unchunked(text: bytes) -> bytes:
    """The content: how the gateway cuts it depends on what has arrived."""
    content = b""
    while text:
        size, _, text = text.partition(b"\r\n")
        content += text[:int(size, 16)]
        text = text[int(size, 16) + 2:]
    return content


def received(backend: Backend, uneven: list[int]) -> dict[str, tuple]:
    """What the backend has read of each target: the first copy, and how many it had. Without the conversations `uneven`."""
    found: dict[str, tuple] = {}
    without = tuple(f"/{number}-" for number in uneven)
    for seen in backend.seen:
        if any(part in seen.target for part in without):
            continue
        fields = [(name, value) for name, value in seen.fields if name not in ("countersign-event", "x-forwarded-for")]
        first = found.get(seen.target)
        found[seen.target] = (first[0] if first else (seen.method, fields, seen.body), (first[1] if first else 0) + 1)
    return found


@pytest.fixture(scope="module")
def gateways(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paths")
    running = []
    try:
        for path in PATHS:
            backend = Backend(answer)
            gateway = Gateway(folder / path, "--tls", "off", *options_of(path), "--upstream", backend.url, "--authority", AUTHORITY,
                              "--workers", 1, "--limit-connections", 4_000)
            gateway.start()
            gateway.add_app("demo")
            gateway.add_release("demo", "ios", "1.0", "--key-id", "ios-1", "--secret", SECRET)
            running.append((gateway, backend))
        yield running
    finally:
        for gateway, backend in running:
            gateway.stop()
            backend.close()


def test_both_paths_answer_alike(gateways):
    key = TextKey("ios-1", SECRET, AUTHORITY)
    seed = int(os.environ.get("COUNTERSIGN_SEED", time.time_ns()))
    print(f"measured: seed {seed}")
    plans: list[Plan] = []
    draw = random.Random(seed)
    numbers = itertools.count(draw.randrange(1 << 19))
    count = 0
    differing: list[tuple[Plan, list[bytes], list[bytes]]] = []
    chances: list[int] = []
    # One of the two may have been closed earlier, so that less of it reached the backend.
    uneven: list[int] = []
    failed: set[str] = set()
    statuses: dict[bytes, int] = {}

    def play(plan: Plan) -> tuple[Plan, list[bytes], list[bytes]]:
        # At the same time: what a response says of the time is then the same.
        first, second = (converse(plan, gateway.port) for gateway, _ in gateways)
        return plan, first, second

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        while count < REQUESTS:
            plans = []
            while len(plans) < 200 and count < REQUESTS:
                # A target of its own: what the backends received is compared by target.
                plan = Plan(next(numbers), key, draw.random())
                count += len(plan.messages)
                plans.append(plan)
            together = pool.map(play, [plan for plan in plans if not plan.is_alone])
            for plan, first, second in [*together, *map(play, [plan for plan in plans if plan.is_alone])]:
                for response in first:
                    status = response.split(b" ")[1] if b" " in response else response
                    statuses[status] = statuses.get(status, 0) + 1
                    if status == b"502":
                        failed.add(str(plan.number))
                if first != second:
                    uneven.append(plan.number)
                number = plan.number
                for attempt in range(1, ATTEMPTS):
                    if agree(plan, first, second):
                        break
                    # Once in some ten thousand a connection fails by chance, on either path. The same again tells.
                    chances.append(number)
                    plan = Plan(attempt << 20 | number, key, plan.seed)
                    plan, first, second = play(plan)
                if not agree(plan, first, second):
                    differing.append((plan, first, second))
    print(f"measured: {count} requests on both paths, statuses {dict(sorted(statuses.items()))}, played again {len(chances)}")
    for plan, first, second in differing[:3]:
        tell(plan, first, second)
    assert not differing, f"{len(differing)} conversations differ, seed {seed}"
    # The test has met what it is about.
    assert statuses[b"200"] > count / 4 and statuses[b"502"] > 0 and statuses[b"401"] > 0 and statuses[b"400"] > 0, statuses
    assert len(chances) <= 5 + count // 2_000 and len(uneven) < count // 100, (chances, uneven)
    on, off = (received(backend, uneven) for _, backend in gateways)
    # A connection that ends by chance before it takes the request leads to 502 like the bad response that was planned.
    lost = on.keys() ^ off.keys()
    assert len(lost) <= 1 + count // 10_000 and all(target.split("/")[2].split("-")[0] in failed for target in lost), lost
    for target in on.keys() & off.keys():
        request, copies = on[target]
        assert request == off[target][0], target
        if request[0] not in ("GET", "HEAD", "OPTIONS"):
            assert copies == 1, f"{target}: {copies} copies"
