"""`enforcement=observe`: what would be refused reaches the backend, marked; nothing else changes."""

import json
import random
import sqlite3
import time
import urllib.parse

import pytest

import bearer
from clock import Clock
from gateway import Gateway, run
from l1_client import signed as form_signed
from test_routes import code, unsigned
from waiting import until

OBSERVED = ("unsigned", "unknown-key", "bad-signature", "stale", "replayed", "body-mismatch", "token-expired", "scheme-not-allowed")


@pytest.fixture
def gateway(tmp_path, backend):
    with Gateway(tmp_path / "gateway", "--tls", "off", "--upstream", backend.url, clock=Clock(tmp_path)) as running:
        running.add_app("demo", legacy_host="127.0.0.1", enforcement="observe")
        running.key = running.add_release()
        yield running


class Mix:
    """Requests of every kind, each with the verdict that it must get; `ok` for a good one."""

    def __init__(self, gateway: Gateway, seed: int):
        self.gateway, self.key, self.chance, self.number = gateway, gateway.key, random.Random(seed), 0
        self.sent_before: list[bytes] = []
        gateway.admin("release", "add", "demo", "--platform", "ios", "--version", "0.9", "--scheme", "form-md5", "--key-id", "old",
                      "--secret-stdin", stdin="old-secret")
        gateway.admin("app", "policy", "demo", "--set", "legacy-session=authority", "--set", "legacy-login=on",
                      "--set", "legacy-renewal=on", "--set", "token-lifetime=1s")
        account = {"name": "ada", "user_id": 100, "rung": "plain-post", "value": "pw-ada"}
        gateway.admin("account", "import", "demo", "-", stdin=json.dumps(account))
        form = b"username=ada&password=pw-ada"
        login = gateway.send(unsigned(gateway, "/login/login.php", "POST", "Content-Type: application/x-www-form-urlencoded", body=form))
        self.token = json.loads(login.body)["token"]
        gateway.clock.advance(2)  # It expires after one second.

    def next(self) -> tuple[bytes, str]:
        self.number += 1
        kind = self.chance.choice(("ok", *OBSERVED))
        return getattr(self, kind.replace("-", "_"))(f"/n{self.number}"), kind

    def ok(self, target: str) -> bytes:
        request = self.key.request("GET", target) if self.chance.random() < 0.5 else self.key.request("POST", target, b"a=1")
        self.sent_before.append(request)
        return request

    def unsigned(self, target: str) -> bytes:
        if self.chance.random() < 0.5:
            return unsigned(self.gateway, target)
        return unsigned(self.gateway, target, "POST", "Content-Type: application/json", body=b"{}")

    def unknown_key(self, target: str) -> bytes:
        return self.key.request("GET", target).replace(f'keyid="{self.key.key_id}"'.encode(), b'keyid="r_nobody"').replace(
            f"countersign-release: {self.key.key_id}".encode(), b"countersign-release: r_nobody")

    def bad_signature(self, target: str) -> bytes:
        return self.key.request("GET", target + "/b").replace(b"/b ", b"/c ")

    def stale(self, target: str) -> bytes:
        return self.key.request("GET", target, created=int(time.time()) - 1_000)

    def replayed(self, target: str) -> bytes:
        # A recent one: on a slow machine an early one may be stale.
        return self.chance.choice(self.sent_before[-20:])

    def body_mismatch(self, target: str) -> bytes:
        return self.key.request("POST", target, b"amount=1")[:-1] + b"9"

    def token_expired(self, target: str) -> bytes:
        return unsigned(self.gateway, target, "GET", f"Authorization: Bearer {self.token}")

    def scheme_not_allowed(self, target: str) -> bytes:
        parameters = form_signed({"a": "1"}, "old", "old-secret", "ios", "0.9")
        return unsigned(self.gateway, f"{target}?{urllib.parse.urlencode(parameters)}")


def test_a_thousand_requests_each_with_its_verdict(gateway, backend):
    """And enforced, exactly those with a verdict are refused."""
    gateway.admin("app", "policy", "demo", "--set", "schemes=message-signatures,form-md5,token", "--set", "window=300s")
    mix = Mix(gateway, seed=14)
    gateway.admin("app", "policy", "demo", "--set", "schemes=message-signatures,token")
    mix.gateway.send(mix.ok("/n0"))
    extra = len(backend.seen)
    sent = []
    with gateway.connect() as connection:
        for number in range(1_000):
            request, kind = mix.next()
            sent.append((request, kind))
            connection.send(request)
            assert connection.answer().status == 200, (number, kind)
            seen = backend.seen[extra + number]
            assert seen.get("countersign-verdict") == (None if kind == "ok" else kind), (number, kind)
            named = {name for name, _ in seen.fields if name.startswith("countersign-")}
            assert ("countersign-app" in named) == (kind == "ok"), (kind, named)
    assert len(backend.seen) == extra + 1_000
    assert {kind for _, kind in sent} == {"ok", *OBSERVED}
    wait_for_meter(gateway, sent)

    gateway.admin("app", "policy", "demo", "--set", "enforcement=enforce")
    reached = len(backend.seen)
    mix.sent_before.clear()
    mix.gateway.send(mix.ok("/n0"))
    enforced = []
    reached = len(backend.seen)
    for number in range(1_000):
        request, kind = mix.next()
        enforced.append((request, kind))
        answer = gateway.send(request)
        # form-md5's clients look for an error in an answer of 200 alone.
        refused = answer.status != 200 or answer.body.startswith(b'{"err"')
        assert refused == (kind != "ok"), (number, kind)
        if answer.status != 200:
            assert code(answer) == kind, number
    assert len(backend.seen) == reached + sum(kind == "ok" for _, kind in enforced)


def wait_for_meter(gateway: Gateway, sent: list) -> None:
    expected = {kind: sum(other == kind for _, other in sent) for kind in OBSERVED}

    def counts() -> dict[str, int]:
        told = json.loads(gateway.admin("meter", "demo", "--json").out)
        found: dict[str, int] = {}
        for row in told["unsigned"] + told["releases"]:
            for name, count in row["would_refuse_by_code"].items():
                found[name] = found.get(name, 0) + count
        return found

    until(lambda: gateway.clock.advance(1) or counts() == expected, lambda: (counts(), expected))
    text = gateway.admin("meter", "demo").out
    assert "WOULD REFUSE" in text and "would be refused of demo:" in text


def test_what_is_never_let_through(gateway, backend):
    """Framing, hosts, paths, limits, retirement; and nothing on our own routes or a route that enforces."""
    gateway.admin("route", "set", "demo", "/strict", "--require", "signed", "--enforcement", "enforce")
    old = gateway.add_release("demo", "ios", "0.1")
    gateway.admin("release", "retire", old.key_id, "--at", "now", "--update-url", "https://example.com/app")
    refused = {
        "unsigned": unsigned(gateway, "/strict/a"), "malformed": unsigned(gateway, "/a/../strict"),
        "bad-signature": gateway.key.request("GET", "/strict/b").replace(b"/strict/b", b"/strict/c"),
        "update-required": old.request("GET", "/a"),
    }
    for expected, request in refused.items():
        assert code(gateway.send(request)) == expected
    assert gateway.send(unsigned(gateway, "/a", host="elsewhere.test")).status in (400, 401, 421)
    assert gateway.send(b"GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n").status == 400
    assert gateway.send(unsigned(gateway, "/countersign/v1/sessions")).status == 401
    assert gateway.send(unsigned(gateway, "/STRICT/a")).status == 401, "as a forgiving backend reads it"
    assert backend.seen == []
    assert code(gateway.send(unsigned(gateway, "/a"))) == "ok"


def test_a_level_is_observed_before_a_route_asks_for_it(tmp_path, backend):
    """Callers without a session, and sessions without a device key, reach the backend with their identity and the verdict."""
    with Gateway(tmp_path, "--upstream", backend.url) as gateway:
        bearer.add_app(gateway, 1)
        token = json.loads(gateway.send(bearer.login(gateway, "user-0")).body)["token"]

        def session(target: str) -> bytes:
            return gateway.key.request("GET", target, fields=[("authorization", f"Bearer {token}")])

        gateway.admin("route", "set", "demo", "/pay", "--require", "session", "--enforcement", "observe=1d")
        gateway.admin("route", "set", "demo", "/own", "--require", "device", "--enforcement", "observe=1d")
        cases = [(gateway.key.request("GET", "/pay/1"), "session-required", None), (session("/pay/1"), None, "name:user-0"),
                 (gateway.key.request("POST", "/pay/1", b"amount=1"), "session-required", None),
                 (gateway.key.request("GET", "/own"), "session-required", None), (session("/own"), "forbidden", "name:user-0")]
        for request, verdict, account in cases:
            answer = gateway.send(request)
            assert answer.status == 200, answer.body
            seen = backend.seen[-1]
            assert (seen.get("countersign-verdict"), seen.get("countersign-app"), seen.get("countersign-account")) == (
                verdict, "demo", account)
        assert [event.get("verdict") for event in until(lambda: (gateway.events()[-5:] if len(gateway.events()) > 5 else []), "")
                ] == [verdict for _, verdict, _ in cases]

        def line() -> dict:
            return json.loads(gateway.admin("meter", "demo", "--json").out)["releases"][0]

        until(lambda: line()["would_refuse"] == 4, line)
        assert line()["would_refuse_by_code"] == {"session-required": 3, "forbidden": 1}
        # They are callers of the release all the same: a retirement would cut them off.
        impact = json.loads(gateway.admin("release", "impact", gateway.key.key_id, "--json").out)
        assert impact["accepted"] == 6, impact
        gateway.admin("route", "set", "demo", "/pay", "--require", "session", "--enforcement", "enforce")
        reached = len(backend.seen)
        assert code(gateway.send(gateway.key.request("GET", "/pay/2"))) == "session-required"
        assert len(backend.seen) == reached


def test_a_session_that_is_over_is_refused_while_a_route_observes(tmp_path, backend):
    with Gateway(tmp_path, "--upstream", backend.url) as gateway:
        bearer.add_app(gateway, 1)
        granted = json.loads(gateway.send(bearer.login(gateway, "user-0")).body)
        gateway.admin("route", "set", "demo", "/", "--require", "session", "--enforcement", "observe=1d")
        gateway.admin("session", "revoke", granted["session"])
        request = gateway.key.request("GET", "/a", fields=[("authorization", f"Bearer {granted['token']}")])
        assert code(gateway.send(request)) == "session-ended" and backend.seen == []


def test_a_release_of_another_apps_host_opens_nothing(gateway, backend):
    gateway.admin("app", "policy", "demo", "--set", "legacy-host=other.test")
    bad = gateway.key.request("GET", "/a").replace(b"/a ", b"/b ")
    assert code(gateway.send(bad)) == "bad-signature" and code(gateway.send(unsigned(gateway, "/a"))) == "unsigned"
    assert backend.seen == []


def test_a_streamed_body_is_never_vouched_for_unseen(gateway, backend):
    """Its head has gone on with an identity before the body is known, so a wrong one is refused here, too."""
    body = b"z" * (3 << 20)
    assert code(gateway.send(gateway.key.request("PUT", "/up", body))) == "ok"
    assert backend.seen[-1].body == body and backend.seen[-1].get("countersign-app") == "demo"
    sent = len(backend.seen)
    assert gateway.send(gateway.key.request("PUT", "/up", body)[:-1] + b"!").status >= 400
    assert len(backend.seen) == sent


def test_it_ends_and_says_so(gateway, backend):
    listed = json.loads(gateway.admin("route", "list", "demo", "--json").out)
    end = int(listed["enforcement"].removeprefix("observe="))
    assert abs(end - time.time() - 30 * 86_400) < 60
    assert "reach the backend" in gateway.admin("route", "list", "demo").out
    told = until(lambda: gateway.clock.advance(1) or [line for line in gateway.events() if line.get("log") == "enforcement"],
                 "the log does not say it")
    assert "app demo" in told[0]["message"] and "reach the backend until" in told[0]["message"]
    for wrong in ("observe=0d", "observe=31d", "observe=5", "off"):
        done = run("app", "policy", "demo", "--set", f"enforcement={wrong}", "--data", gateway.data)
        assert done.returncode == 2 and "expected enforce" in done.err
    # Its end has come.
    with sqlite3.connect(gateway.data / "countersign.db") as store:
        store.execute("UPDATE app_setting SET text = ? WHERE name = 'enforcement'", (f"observe={int(time.time()) - 1}",))
    gateway.accept_rows()
    gateway.admin("app", "policy", "demo", "--set", "debug=off")
    assert code(gateway.send(unsigned(gateway, "/a"))) == "unsigned" and backend.seen == []
