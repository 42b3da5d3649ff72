"""What the backend's routes ask for: rules by path and method, from `open` to `device`."""

import json

import pytest

from gateway import Gateway, run
from person import Person
from waiting import until


@pytest.fixture
def gateway(tmp_path, backend):
    with Gateway(tmp_path / "gateway", "--tls", "off", "--upstream", backend.url) as running:
        yield running


def unsigned(gateway: Gateway, target: str, method: str = "GET", *fields: str, body: bytes = b"", host: str | None = None) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host or f'127.0.0.1:{gateway.port}'}", *fields]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def code(answer) -> str:
    return "ok" if answer.status == 200 else json.loads(answer.body)["code"]


def rules(gateway: Gateway, app: str = "demo") -> dict:
    return {(row["prefix"], *row["methods"]): row["require"]
            for row in json.loads(gateway.admin("route", "list", app, "--json").out)["routes"]}


def test_a_new_app_asks_for_a_session_and_says_so(gateway):
    made = gateway.admin("app", "add", "shop")
    assert "`session`" in made.out and "countersign route set shop / --require signed" in made.out
    assert rules(gateway, "shop") == {("/",): "session"}
    key = gateway.add_release("shop")
    refused = gateway.send(key.request("GET", "/orders"))
    assert code(refused) == "session-required"
    assert code(gateway.send(key.request("GET", "/countersign/v1/sessions"))) == "session-required", "the authority's own route"
    event = gateway.event(json.loads(refused.body)["instance"])
    assert "/ asks for `session`" in event["detail"] and "countersign route set shop / --require signed" in event["detail"]
    gateway.admin("route", "set", "shop", "/", "--require", "signed")
    assert code(gateway.send(key.request("GET", "/orders"))) == "ok", "the very next request goes by it"
    assert "signed" in gateway.admin("app", "add", "other", "--require", "signed").out
    assert rules(gateway, "other") == {("/",): "signed"}


def test_the_longest_path_decides(gateway):
    gateway.add_app("demo", require="session")
    key = gateway.add_release()
    gateway.admin("route", "set", "demo", "/public", "--require", "signed")
    gateway.admin("route", "set", "demo", "/public/mine", "--require", "session")
    gateway.admin("route", "set", "demo", "/news", "--methods", "get", "--require", "signed")
    got = {target: code(gateway.send(key.request("GET", target)))
           for target in ("/", "/public", "/public/a", "/public/mine", "/public/mine/a", "/publicity", "/PUBLIC", "/news")}
    assert got == {"/": "session-required", "/public": "ok", "/public/a": "ok", "/public/mine": "session-required",
                   "/public/mine/a": "session-required", "/publicity": "session-required", "/PUBLIC": "session-required", "/news": "ok"}
    assert code(gateway.send(key.request("POST", "/news", b"x"))) == "session-required"
    assert gateway.send(key.request("HEAD", "/news"), to_head=True).status == 200
    assert rules(gateway) == {("/",): "session", ("/public",): "signed", ("/public/mine",): "session", ("/news", "GET"): "signed"}
    gateway.admin("route", "remove", "demo", "/public/mine")
    assert code(gateway.send(key.request("GET", "/public/mine"))) == "ok"
    gateway.admin("route", "remove", "demo", "/news", "--methods", "GET")
    assert code(gateway.send(key.request("GET", "/news"))) == "session-required"


def test_what_is_no_rule_is_said(gateway):
    gateway.add_app("demo")
    for said, *words in (("--require", "set", "demo", "/a"), ("open, signed, session or device", "set", "demo", "/a", "--require", "no"),
                         ("/a/../b", "set", "demo", "/a/../b", "--require", "open"), ("begins with /", "test", "demo", "GET", "a"),
                         ("1 to 30 days", "set", "demo", "/a", "--require", "open", "--enforcement", "observe=31d")):
        done = run("route", *words, "--data", gateway.data)
        assert done.returncode == 2 and said in done.err, done.err
    assert rules(gateway) == {("/",): "signed"}


def test_what_is_not_there_cannot_be_removed(gateway):
    gateway.add_app("demo")
    for words, said in ((("demo", "/"), "set it to another level"), (("demo", "/a"), "no rule for /a"), (("none", "/"), "there is none")):
        done = run("route", "remove", *words, "--data", gateway.data)
        assert done.returncode == 1 and said in done.err, done.err


def test_what_a_route_requires_is_no_policy_key(gateway):
    gateway.add_app("demo")
    for setting in ("anonymous=all", "device-signed=/pay"):
        done = run("app", "policy", "demo", "--set", setting, "--data", gateway.data)
        assert done.returncode == 2 and "known are schemes, window" in done.err, done.err
    assert rules(gateway) == {("/",): "signed"}


def test_a_program_in_the_path_opens_nothing(gateway):
    """Which is told the rest of the path as its own."""
    gateway.add_app("demo")
    gateway.admin("route", "set", "demo", "/pay", "--require", "session")
    key = gateway.add_release()
    assert code(gateway.send(key.request("GET", "/a/INDEX.PHP/pay"))) == "session-required"
    assert code(gateway.send(key.request("GET", "/index.php/other"))) == "ok"


def test_of_two_rules_for_a_method_the_stricter_counts(gateway):
    gateway.add_app("demo")
    key = gateway.add_release()
    gateway.admin("route", "set", "demo", "/a", "--require", "signed", "--methods", "GET,POST")
    said = gateway.admin("route", "set", "demo", "/a", "--require", "session", "--methods", "DELETE,GET")
    assert "other methods of /a" in said.err
    assert "/secret.html names a file" in gateway.admin("route", "set", "demo", "/secret.html", "--require", "session").err
    assert [code(gateway.send(key.request(method, "/a"))) for method in ("GET", "POST", "DELETE", "PUT")] == [
        "session-required", "ok", "session-required", "ok"]


def test_what_moves_and_whose_it_is_does_not_go_to_an_open_route(gateway, backend):
    gateway.add_app("demo", legacy_host="127.0.0.1", require="open")
    token = "b_" + "a" * 43
    assert code(gateway.send(unsigned(gateway, "/drop", "MOVE", "Destination: http://h/mine", f"Cookie: a=b; sid={token}",
                                      f"X-Token: {token}", "X-Own: 1"))) == "ok"
    assert {name for name, _ in backend.seen[-1].fields} & {"destination", "cookie", "x-token", "x-own"} == {"x-own"}


def test_an_open_route_lets_anybody_through_without_an_identity(gateway, backend):
    gateway.add_app("demo", legacy_host="127.0.0.1")
    gateway.admin("route", "set", "demo", "/open", "--require", "open")
    key = gateway.add_release()
    spoofed = ("Countersign-Account: 1", "Countersign-Verdict: ok", "X-Forwarded-For: 9.9.9.9", "Authorization: Bearer theirs",
               "Cookie: sid=1", "X-Own: a", "Connection: X-Hop", "X-Hop: b")
    assert code(gateway.send(unsigned(gateway, "/open/a?b=c", "POST", *spoofed, body=b"x=1"))) == "ok"
    seen = backend.seen[-1]
    assert (seen.method, seen.target, seen.body) == ("POST", "/open/a?b=c", b"x=1")
    names = {name for name, _ in seen.fields}
    assert {name for name in names if name.startswith("countersign-")} == {"countersign-client", "countersign-event"}
    assert seen.get("x-forwarded-for") == "127.0.0.1" and seen.get("cookie") == "sid=1" and seen.get("x-own") == "a"
    assert seen.get("authorization") == "Bearer theirs" and "x-hop" not in names
    # The gateway's own token is not forwarded.
    gateway.send(unsigned(gateway, "/open", "GET", "Authorization: Bearer b_" + "a" * 43))
    assert backend.seen[-1].get("authorization") is None
    # The gateway tells the backend the signer, and still refuses a wrong signature.
    assert code(gateway.send(key.request("GET", "/open/b"))) == "ok"
    assert backend.seen[-1].get("countersign-app") == "demo"
    sent = len(backend.seen)
    assert code(gateway.send(key.request("GET", "/open/b").replace(b"/open/b", b"/open/c"))) == "bad-signature"
    assert code(gateway.send(unsigned(gateway, "/other"))) == "unsigned"
    assert code(gateway.send(unsigned(gateway, "/open/../other"))) == "malformed"
    assert code(gateway.send(unsigned(gateway, "/open%2F..%2Fother"))) == "malformed"
    assert len(backend.seen) == sent
    # A large body streams, one of unknown length is held.
    large = b"y" * (2 << 20)
    assert code(gateway.send(unsigned(gateway, "/open/up", "PUT", body=large))) == "ok"
    assert backend.seen[-1].body == large
    chunked = unsigned(gateway, "/open/up", "PUT", "Transfer-Encoding: chunked") + b"3\r\nabc\r\n0\r\n\r\n"
    assert code(gateway.send(chunked)) == "ok" and backend.seen[-1].body == b"abc"


def test_it_belongs_to_the_app_of_its_host_alone(gateway):
    """If two apps name a host, or none does, no app's rules open a route."""
    gateway.add_app("demo", require="open")
    assert code(gateway.send(unsigned(gateway, "/"))) == "unsigned"
    gateway.admin("app", "policy", "demo", "--set", f"legacy-host=127.0.0.1:{gateway.port}")
    assert code(gateway.send(unsigned(gateway, "/"))) == "ok"
    gateway.add_app("twin", require="open", legacy_host=f"127.0.0.1:{gateway.port}")
    assert code(gateway.send(unsigned(gateway, "/"))) == "unsigned"
    gateway.admin("app", "policy", "twin", "--set", "legacy-host=")
    assert code(gateway.send(unsigned(gateway, "/"))) == "ok"


def test_the_meter_counts_what_is_open(gateway):
    gateway.add_app("demo", legacy_host="127.0.0.1")
    gateway.admin("route", "set", "demo", "/open", "--require", "open")
    for _ in range(7):
        gateway.send(unsigned(gateway, "/open"))

    def unsigned_rows() -> list[dict]:
        return json.loads(gateway.admin("meter", "demo", "--json").out)["unsigned"]

    until(lambda: unsigned_rows() and unsigned_rows()[0]["open"] == 7, unsigned_rows)
    rows = unsigned_rows()
    assert rows[0]["would_refuse"] == 0 and "OPEN" in gateway.admin("meter", "demo").out
    events = [event for event in gateway.events() if event.get("path") == "/open"]
    assert events and all(event["app"] == "demo" and "scheme" not in event for event in events)


def test_an_unsigned_refusal_names_the_level_and_the_command(gateway):
    """In the log; to the caller, who has proved nothing, with `debug` alone."""
    gateway.add_app("demo", legacy_host="127.0.0.1", require="session")
    gateway.admin("route", "set", "demo", "/news", "--require", "signed", "--methods", "GET,POST")
    for target, need in (
            ("/a", "/ asks for `session`; `countersign route set demo / --require open` lets anybody call it"),
            ("/news/1", "/news asks for `signed`; `countersign route set demo /news --require open --methods GET,POST` lets")):
        for debug, shown in (("off", False), ("on", True)):
            gateway.admin("app", "policy", "demo", "--set", f"debug={debug}")
            refused = gateway.send(unsigned(gateway, target))
            assert code(refused) == "unsigned"
            assert need in gateway.event(json.loads(refused.body)["instance"])["detail"]
            assert (need in json.loads(refused.body).get("detail", "")) == shown
            assert ("countersign route" in refused.body.decode()) == shown
    # The command does what it says.
    gateway.admin("route", "set", "demo", "/news", "--require", "open", "--methods", "GET,POST")
    assert code(gateway.send(unsigned(gateway, "/news/1"))) == "ok"
    # A signed request's refusal names a command that changes the rule which applies.
    gateway.admin("route", "set", "demo", "/paid", "--require", "session", "--methods", "GET")
    refused = gateway.send(gateway.add_release().request("GET", "/paid"))
    assert "route set demo /paid --require signed --methods GET`" in gateway.event(json.loads(refused.body)["instance"])["detail"]
    # A host of no app's names no level.
    gateway.admin("app", "policy", "demo", "--set", "legacy-host=other.test")
    refused = gateway.send(unsigned(gateway, "/a"))
    assert "asks for" not in gateway.event(json.loads(refused.body)["instance"])["detail"]


def route_test(gateway: Gateway, app: str = "demo", target: str = "/a") -> tuple[bool, str]:
    """Whether an unsigned request passes by `route test`, and what that says."""
    done = [gateway.admin("route", "test", app, "GET", target, *form) for form in (("--json",), ())]
    return json.loads(done[0].out)["unsigned_pass"], done[1].out


def test_what_lets_no_unsigned_request_through_says_so(gateway):
    """Level `open` and `enforcement=observe`, where the app names no legacy-host, or another names it, too."""
    host = "127.0.0.1"
    assert "demo names none: `countersign app policy demo --set legacy-host=HOST`" in gateway.admin(
        "app", "add", "demo", "--require", "open").err
    assert "`open` lets no unsigned request through yet" in gateway.admin("route", "set", "demo", "/x", "--require", "open").err
    assert gateway.admin("route", "set", "demo", "/y", "--require", "signed").err == ""
    assert "unsigned requests are still refused" in gateway.admin(
        "route", "set", "demo", "/y", "--require", "signed", "--enforcement", "observe").err
    assert "unsigned requests are still refused" in gateway.admin("app", "policy", "demo", "--set", "enforcement=observe").err
    passes, said = route_test(gateway)
    assert not passes and "not for unsigned requests: the app's policy names no legacy-host" in said
    assert code(gateway.send(unsigned(gateway, "/a"))) == "unsigned"
    logged = wait_for_note(gateway, "app demo: requests without a valid proof")
    assert "except those that name no known release (unsigned, unknown key), which are refused" in logged

    assert "note" not in gateway.admin("app", "policy", "demo", "--set", f"legacy-host={host}").err
    passes, said = route_test(gateway)
    assert passes and "not for" not in said and code(gateway.send(unsigned(gateway, "/a"))) == "ok"
    wait_for_note(gateway, "app demo: requests without a valid proof", but=logged)
    assert "demo names that legacy-host, too: unsigned requests to 127.0.0.1 belong to neither app" in gateway.admin(
        "app", "add", "twin", "--set", f"legacy-host={host}").err
    passes, said = route_test(gateway)
    assert not passes and "legacy-host 127.0.0.1 is also named by twin" in said
    assert code(gateway.send(unsigned(gateway, "/a"))) == "unsigned"
    wait_for_note(gateway, "legacy-host 127.0.0.1 is also named by twin")

    # One port of the host is the twin's as well: there no app's rules apply.
    port = f"{host}:{gateway.port}"
    said = gateway.admin("app", "policy", "twin", "--set", f"legacy-host={port}").err
    assert f"unsigned requests to {port} belong to neither app" in said
    assert route_test(gateway)[0] and not route_test(gateway, "twin")[0]
    assert code(gateway.send(unsigned(gateway, "/a"))) == "unsigned"
    assert gateway.admin("app", "policy", "twin", "--set", "legacy-host=other.test").err == ""


def wait_for_note(gateway: Gateway, words: str, but: str = "") -> str:
    """The newest message of the log about enforcement that has these words."""
    def found() -> list[str]:
        return [line["message"] for line in gateway.events() if line.get("log") == "enforcement"]

    until(lambda: found() and words in found()[-1] and found()[-1] != but, found)
    return found()[-1]


def test_levels_of_a_person(tmp_path):
    with Gateway(tmp_path / "gateway") as gateway:
        gateway.add_app("demo", require="session", registration="open")
        gateway.admin("route", "set", "demo", "/pay", "--require", "device")
        alice = Person(gateway, tmp_path / "alice", "alice").signs_up().logs_in()
        assert alice.calls("/hello")["headers"]["countersign-account"]
        assert alice.calls("-d", "amount=1", "/pay/now")["headers"]["countersign-account"]
        assert gateway.stop() == 0, "then all of the log is there"
        events = [event for event in gateway.events() if event.get("path") == "/pay/now"]
        assert [event["code"] for event in events] == ["device-unsigned", "ok"]
        assert "/pay asks for `device`" in events[0]["detail"]
        assert "countersign route set demo /pay --require session" in events[0]["detail"]
