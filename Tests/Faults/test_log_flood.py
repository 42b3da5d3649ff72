"""A caller whose requests are all refused cannot fill the log's disk: the log has the first lines of each
cause and address in a window, counts the others exactly, and leaves out no other caller's lines."""

import collections
import json
import time
import urllib.request

import pytest

from gateway import Gateway
from ports import reserve_port
from waiting import until
from wire import Connection

FLOOD = 20_000
ATTACKER, OTHER = "127.0.0.2", "127.0.0.3"


@pytest.fixture
def admin_port() -> int:
    return reserve_port()


@pytest.fixture
def flooded(tmp_path, admin_port):
    with Gateway(tmp_path, "--tls", "off", "--admin", f"127.0.0.1:{admin_port}") as running:
        running.add_app("demo")
        running.key = running.add_release()
        yield running


def unsigned(gateway: Gateway, target: str = "/", method: str = "GET") -> bytes:
    return f"{method} {target} HTTP/1.1\r\nHost: {gateway.key.authority}\r\n\r\n".encode()


def flood(gateway: Gateway, request: bytes, count: int, source: str = ATTACKER) -> list[int]:
    """Sends `count` requests from one address, some at a time, and returns the statuses."""
    statuses: list[int] = []
    while len(statuses) < count:
        with Connection(gateway.port, source=source) as connection:
            # A connection takes a bounded number of requests: the server says so in the last answer.
            for _ in range(count):
                batch = min(50, count - len(statuses))
                connection.send(request * batch)
                for _ in range(batch):
                    answer = connection.answer()
                    statuses.append(answer.status)
                    if answer.get("connection") == "close":
                        break
                if answer.get("connection") == "close" or len(statuses) == count:
                    break
    return statuses


def lines(gateway: Gateway, source: str, code: str) -> list[dict]:
    return [event for event in gateway.events() if event.get("peer", "").startswith(f"{source}:") and event["code"] == code]


def left_out(gateway: Gateway) -> collections.Counter:
    """What the summaries say was not written, by address and code."""
    counts: collections.Counter = collections.Counter()
    for event in gateway.events():
        if event.get("log") == "sampled":
            counts[event["address"], event["code"]] += event["more"]
    return counts


def refusals(admin_port: int, token: str, code: str) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{admin_port}/metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        rows = [line for line in answer.read().decode().splitlines()
                if line.startswith("countersign_requests_total{") and f'outcome="{code}"' in line]
    return sum(int(float(row.rsplit(" ", 1)[1])) for row in rows)


def test_a_flood_of_refusals_is_sampled_and_counted_exactly(flooded, admin_port, note):
    before = flooded.log_path.stat().st_size
    began = time.monotonic()
    statuses = flood(flooded, unsigned(flooded), FLOOD)
    assert statuses == [401] * FLOOD, "the flood was refused, all of it"
    took = time.monotonic() - began

    # Another caller's refusals are all in the log, with the ids that the caller received.
    others = []
    with Connection(flooded.port, source=OTHER) as connection:
        for _ in range(10):
            connection.send(unsigned(flooded))
            others.append(json.loads(connection.answer().body)["instance"])
    assert [flooded.event(instance)["code"] for instance in others] == ["unsigned"] * 10

    # Lines of verified callers are never left out.
    with Connection(flooded.port, source=ATTACKER) as connection:
        for index in range(100):
            connection.send(flooded.key.request("GET", f"/?n={index}"))
            assert connection.answer().status == 200
    assert refusals(admin_port, (flooded.data / "admin-token").read_text().strip(), "unsigned") == FLOOD + 10
    flooded.stop()

    grown = flooded.log_path.stat().st_size - before
    windows = int(took / 10) + 2
    written = len(lines(flooded, ATTACKER, "unsigned"))
    assert 20 <= written <= 20 * windows
    assert written + left_out(flooded)[ATTACKER, "unsigned"] == FLOOD
    assert left_out(flooded).keys() == {(ATTACKER, "unsigned")}
    assert len(lines(flooded, ATTACKER, "ok")) == 100
    assert grown < (100 + 10 + 20 * windows) * 500 + 4096
    note(f"{FLOOD} refusals in {took:.1f} s: {written} lines, the log grew by {grown / 1024:.0f} KiB")


def test_counts_are_told_when_the_window_is_over_and_all_is_quiet(tmp_path):
    with Gateway(tmp_path, "--tls", "off", "--log-sample", "5", "--log-sample-seconds", "1") as gateway:
        gateway.add_app("demo")
        gateway.key = gateway.add_release()
        assert flood(gateway, unsigned(gateway), 300) == [401] * 300
        until(lambda: len(lines(gateway, ATTACKER, "unsigned")) + left_out(gateway)[ATTACKER, "unsigned"] >= 300)
        assert left_out(gateway)[ATTACKER, "unsigned"] > 0
        assert len(lines(gateway, ATTACKER, "unsigned")) + left_out(gateway)[ATTACKER, "unsigned"] == 300


@pytest.mark.parametrize("target,status", [("/countersign/v1/time", 200), ("/countersign/v1/nothing", 404)])
def test_routes_that_are_open_to_anybody_are_sampled_too(flooded, target, status):
    assert flood(flooded, unsigned(flooded, target), 500) == [status] * 500
    flooded.stop()
    written = len(lines(flooded, ATTACKER, "ok"))
    assert 20 <= written <= 100
    assert written + left_out(flooded)[ATTACKER, "ok"] == 500


def test_every_line_is_written_where_the_settings_say_so(tmp_path):
    with Gateway(tmp_path, "--tls", "off", "--log-sample", "0") as gateway:
        gateway.add_app("demo")
        gateway.key = gateway.add_release()
        assert flood(gateway, unsigned(gateway), 1000) == [401] * 1000
        gateway.stop()
        assert len(lines(gateway, ATTACKER, "unsigned")) == 1000
        assert not left_out(gateway)


def test_clients_behind_a_trusted_proxy_are_told_apart_and_networks_of_ipv6_are_not(tmp_path):
    with Gateway(tmp_path, "--tls", "off", "--trusted-proxies", "127.0.0.2") as gateway:
        gateway.add_app("demo")
        gateway.key = gateway.add_release()

        def refused(client: str) -> bytes:
            return unsigned(gateway).replace(b"\r\n\r\n", f"\r\nX-Forwarded-For: {client}\r\n\r\n".encode())

        assert flood(gateway, refused("203.0.113.9"), 200) == [401] * 200
        assert flood(gateway, refused("203.0.113.10"), 10) == [401] * 10
        for host in range(60):
            assert flood(gateway, refused(f"2001:db8::{host + 1:x}"), 1) == [401]
        gateway.stop()
        written = collections.Counter(event["client"] for event in gateway.events() if "client" in event)
        assert written["203.0.113.10"] == 10
        assert 20 <= written["203.0.113.9"] <= 60
        assert written["203.0.113.9"] + left_out(gateway)["203.0.113.9", "unsigned"] == 200
        network = sum(count for client, count in written.items() if client.startswith("2001:db8::"))
        assert 20 <= network <= 59
        assert network + left_out(gateway)["2001:db8::/64", "unsigned"] == 60


def test_a_verified_flood_writes_a_bounded_log(tmp_path, admin_port):
    """The release key is in every copy of the app. A path is cut, and beyond a number of lines the rest is counted."""
    with Gateway(tmp_path, "--tls", "off", "--admin", f"127.0.0.1:{admin_port}", "--log-verified-lines", 10, "--log-sample-seconds",
                 3600) as gateway:
        gateway.add_app("demo", require="signed")
        gateway.key = gateway.add_release()
        target = "/" + "a" * 7_000
        for _ in range(40):
            assert gateway.send(gateway.key.request("GET", target)).status == 200
        assert gateway.stop() == 0
        events = gateway.events()
        written = [event for event in events if event.get("path", "").startswith("/aaa")]
        assert len(written) == 12 and {(len(event["path"]), event["path_bytes"]) for event in written} == {(512, 7_001)}
        (counted,) = [event for event in events if event.get("log") == "sampled"]
        assert (counted["code"], counted["more"], counted["verified"]) == ("ok", 28, "yes")


def test_one_verified_caller_leaves_lines_to_another(tmp_path):
    """Of 40 lines, half are for all; the rest is shared once another address asks."""
    with Gateway(tmp_path, "--tls", "off", "--log-verified-lines", 40, "--log-sample-seconds", 3_600) as gateway:
        gateway.add_app("demo", require="signed")
        gateway.key = gateway.add_release()

        def call(source: str, count: int) -> None:
            with Connection(gateway.port, source=source) as connection:
                for _ in range(count):
                    connection.send(gateway.key.request(target="/"))
                    assert connection.answer().status == 200

        for source, count in ((ATTACKER, 22), (OTHER, 1), (ATTACKER, 90), (OTHER, 4)):
            call(source, count)
        assert gateway.stop() == 0
        assert len(lines(gateway, OTHER, "ok")) == 5
        assert len(lines(gateway, ATTACKER, "ok")) < 40


ESCAPED = b"%01" * 170_000
FORM = "form-md5 auth-v1 auth-v4"


@pytest.mark.parametrize("scheme", FORM.split())
def test_what_a_stranger_sends_makes_no_long_line_and_no_long_answer(tmp_path, admin_port, scheme):
    """A name of half a megabyte in a form, and the parts of a signature, are quoted in a refusal's detail and then cut."""
    with Gateway(tmp_path, "--tls", "off", "--admin", f"127.0.0.1:{admin_port}") as gateway:
        gateway.add_app("demo", schemes=f"{scheme},message-signatures", debug="on")
        made = gateway.admin("release", "add", "demo", "--platform", "ios", "--version", "1", "--scheme", scheme, "--json")
        key_id = json.loads(made.out)["key_id"].encode()
        gateway.key = key = gateway.add_release(version="2")
        signs = {"form-md5": b"appid=%s&sign=" + b"a" * 32, "auth-v1": b"app_key=%s&auth_key=%s&auth_timestamp=1&auth_version=1.0"
                 b"&auth_signature=" + b"a" * 64, "auth-v4": b"app_key=%s&auth_key=%s&auth_timestamp=1&auth_version=4.0"
                 b"&auth_signature=" + b"a" * 64}[scheme].replace(b"%s", key_id)
        body = signs + b"&" + ESCAPED + b"=1&" + ESCAPED + b"=2"
        form = (f"POST /x HTTP/1.1\r\nHost: {key.authority}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body
        head = key.head("GET", "/x").decode()
        long = "y" * 6_000
        heads = [head.replace('("@method"', f'("@method" "x{long}"'), head.replace('alg="hmac-sha256"', f'alg="{long}"'),
                 head.replace(f'keyid="{key.key_id}"', f'keyid="{long}"'), head.replace("Signature: app=", f"Signature: {long}="),
                 head.replace("GET /x", f"{'A' * 7_000} /{long}")]
        for request in [form, *(head.encode() for head in heads)]:
            answer = gateway.send(request)
            assert answer.status >= 400 and len(answer.body) < 20_000, (request[:60], len(answer.body))
        until(lambda: len(lines(gateway, "127.0.0.1", "malformed")) > 0)
        gateway.stop()
        longest = max(len(line) for line in gateway.log_path.read_text().splitlines())
        assert longest <= 4_096
