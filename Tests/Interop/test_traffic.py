"""Rates, addresses, maintenance, web pages' origins and sizes: what a team allows reaches the backend, and nothing else
does; the backend counts. Both ways through the engine, with and without a task, decide alike."""

import concurrent.futures
import json
import re

import pytest

import bearer
from backend import Backend, Seen
from gateway import run
from sampling import sampled
from serving_paths import CALLBACKS, PATHS, options_of
from test_metrics import Administered
from test_reload import Site

PAGE = "https://app.example.com"


# With a task as well in script/full.
@pytest.fixture(params=sampled(PATHS, CALLBACKS))
def path(request) -> str:
    return request.param


class Front(Administered):
    def __init__(self, folder, backend: Backend, *options: object):
        super().__init__(folder, "--upstream", backend.url, *options)
        self.backend = backend

    def __enter__(self) -> "Front":
        super().__enter__()
        self.add_app("demo", legacy_host="127.0.0.1")
        self.admin("route", "set", "demo", "/open", "--require", "open")
        self.key = self.add_release()
        return self

    def policy(self, *settings: str) -> None:
        self.admin("app", "policy", "demo", *[part for setting in settings for part in ("--set", setting)])

    def unsigned(self, target: str = "/open", method: str = "GET", **fields: str) -> bytes:
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        return f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{lines}\r\n".encode()

    def codes(self, requests: list[bytes]) -> list[str]:
        """`ok`, or the code of each refusal."""
        return [code_of(self.send(request)) for request in requests]


def code_of(answer) -> str:
    return "ok" if answer.status == 200 else json.loads(answer.body)["code"]


def test_a_release_has_its_rate(tmp_path, backend, path):
    with Front(tmp_path, backend, *options_of(path)) as gateway:
        gateway.policy("rate-release=3/hour")
        other = gateway.add_release("demo", "android")
        answers = [gateway.send(gateway.key.request()) for _ in range(5)]
        assert [answer.status for answer in answers] == [200] * 3 + [429] * 2
        assert len(backend.seen) == 3
        assert [answer.get("ratelimit-policy") for answer in answers] == ['"release";q=3;w=3600'] * 5
        states = [re.fullmatch(r'"release";r=(\d);t=(\d+)', answer.get("ratelimit")) for answer in answers]
        assert [int(state[1]) for state in states] == [2, 1, 0, 0, 0]
        assert 3590 <= int(states[4][2]) <= 3600
        refused = json.loads(answers[4].body)
        assert (refused["code"], refused["detail"]) == ("rate-limited", "3/hour by release")
        assert 1190 <= int(answers[4].get("retry-after")) <= 1200
        # Another release has a rate of its own.
        assert code_of(gateway.send(other.request())) == "ok"
        assert gateway.event(refused["instance"])["code"] == "rate-limited"
        assert gateway.requests()[gateway.key.key_id, "", "rate-limited"] == 2


def test_one_address_leaves_others_something_of_a_release_rate(tmp_path, backend):
    """The release key is in every copy of the app: one of its callers must not use up the rate of all."""
    with Front(tmp_path, backend, "--trusted-proxies", "127.0.0.1") as gateway:
        gateway.policy("rate-release=8/hour")

        def asks(client: str, count: int) -> list[str]:
            return [code_of(gateway.send(gateway.key.request(fields=[("x-forwarded-for", client)]))) for _ in range(count)]

        assert asks("203.0.113.1", 2) == ["ok"] * 2
        assert asks("203.0.113.2", 1) == ["ok"]
        # Seven more by the first would leave nothing.
        assert asks("203.0.113.1", 20).count("ok") == 2
        assert asks("203.0.113.2", 1) == ["ok"] and asks("203.0.113.3", 1) == ["ok"]
        # Another release has one caller, which may use all.
        gateway.key = gateway.add_release("demo", "android")
        assert asks("203.0.113.1", 9).count("ok") == 8


def test_pages_have_no_cookies_without_a_host(tmp_path, backend):
    """Cookies belong to one app, and a preflight request names one by its host alone. Otherwise the page may call without them."""
    with Administered(tmp_path, "--upstream", backend.url) as gateway:
        gateway.add_app("demo", require="signed")
        key = gateway.add_release()
        gateway.admin("app", "policy", "demo", "--set", f"cors-credentials={PAGE}")
        answer = gateway.send(key.request(fields=[("origin", PAGE)]))
        assert answer.status == 200 and allows(answer)["allow-origin"] == PAGE and "allow-credentials" not in allows(answer)


def test_an_account_has_its_rate_on_all_devices(tmp_path, backend):
    with Front(tmp_path, backend) as gateway:
        gateway.policy("rate-account=2/hour", "slots=unlimited", "password-login=on")
        for name in ("user-0", "user-1"):
            gateway.admin("account", "add", "demo", name, "--password-stdin", stdin=f"password of {name}\n")

        def device(name: str):
            token = json.loads(gateway.send(bearer.login(gateway, name)).body)["token"]
            return lambda: gateway.key.request(fields=[("authorization", f"Bearer {token}")])

        first, second, other = device("user-0"), device("user-0"), device("user-1")
        assert gateway.codes([first(), second(), first(), other()]) == ["ok", "ok", "rate-limited", "ok"]
        # A caller without a session has no account, and no rate of one.
        assert gateway.codes([gateway.key.request() for _ in range(3)]) == ["ok"] * 3


def test_a_release_with_a_rate_of_its_own_leaves_the_apps_alone(tmp_path, backend):
    with Front(tmp_path, backend) as gateway:
        gateway.policy("rate-address=2/hour")
        own = gateway.add_release("demo", "android")
        gateway.admin("release", "policy", own.key_id, "--set", "rate-address=100/second")
        codes = gateway.codes([key.request() for _ in range(4) for key in (own, gateway.key)])
        assert codes == ["ok", "ok", "ok", "ok", "ok", "rate-limited", "ok", "rate-limited"]


def test_a_proxy_that_asks_is_told_no_by_its_statuses(tmp_path, backend):
    """Before the secret is shown, and beyond a rate: what a proxy takes for yes is only an answer of decide."""
    with Front(tmp_path, backend, "--decide", "nginx", "--trusted-proxies", "127.0.0.1", "--rate-address", "5/hour") as gateway:
        gateway.policy(f"cors-origins={PAGE}")
        path = "/countersign/v1/decide"
        preflight = gateway.unsigned(path, "OPTIONS", Origin=PAGE, Access_Control_Request_Method="GET")
        assert gateway.send(preflight).status == 403
        answers = [gateway.send(gateway.unsigned(path, X_Forwarded_For="203.0.113.5")) for _ in range(7)]
        assert {answer.status for answer in answers} == {403}
        assert answers[-1].get("countersign-refusal") == "rate-limited"


def test_routes_have_rates_of_their_own(tmp_path, backend, path):
    with Front(tmp_path, backend, *options_of(path)) as gateway:
        gateway.policy("rate-release=4/hour")
        gateway.admin("route", "set", "demo", "/pay", "--require", "signed", "--rate-release", "1/hour",
                      "--methods", "POST,GET")
        request = gateway.key.request
        assert gateway.codes([request("GET", "/pay"), request("POST", "/pay", b"{}"), request("GET", "/pay/x")]) == \
            ["ok", "rate-limited", "rate-limited"]
        answer = gateway.send(request("GET", "/pay"))
        assert answer.get("ratelimit").startswith('"route-release";r=0;')
        # What a backend may read as the route has its rate, too.
        assert gateway.codes([request("GET", "/PAY"), request("GET", "/pay.php")]) == ["rate-limited"] * 2
        # A refusal by the route's rate takes nothing of the app's: three are left.
        assert gateway.codes([request() for _ in range(4)]) == ["ok"] * 3 + ["rate-limited"]
        listed = json.loads(gateway.admin("route", "list", "demo", "--json").out)["routes"]
        assert [route["limits"] for route in listed if route["prefix"] == "/pay"] == [{"rate-release": "1/hour"}]


def test_no_way_to_write_a_path_evades_its_limits(tmp_path, backend, path):
    """Also where the other routes have limits, wider ones: those of each reading of the path count."""
    with Front(tmp_path, backend, *options_of(path)) as gateway:
        gateway.admin("route", "set", "demo", "/", "--require", "signed", "--rate-release", "1000/hour")
        gateway.admin("route", "set", "demo", "/search", "--require", "signed", "--rate-release", "3/hour", "--max-body", "4")
        request = gateway.key.request
        targets = ["/search", "/Search", "/search::$DATA", "/index.phar/search", "/a.cgi/SEARCH.json/x"]
        assert gateway.codes([request("GET", target) for target in targets]) == ["ok"] * 3 + ["rate-limited"] * 2
        assert gateway.codes([request("POST", target, b"12345") for target in targets]) == ["too-large"] * 5
        assert gateway.codes([request("GET", "/other"), request("GET", "/searches")]) == ["ok"] * 2


def test_two_routes_with_equal_rates_count_by_themselves(tmp_path, backend, path):
    with Front(tmp_path, backend, *options_of(path)) as gateway:
        for prefix in ("/", "/open", "/pay"):
            gateway.admin("route", "set", "demo", prefix, "--require", "signed", "--rate-address", "2/hour")
        targets = ["/other"] * 3 + ["/pay"] * 3
        assert gateway.codes([gateway.key.request("GET", target) for target in targets]) == \
            ["ok", "ok", "rate-limited"] * 2


def test_a_copy_of_a_request_takes_nothing_of_the_rate(tmp_path, backend):
    with Front(tmp_path, backend) as gateway:
        gateway.policy("rate-release=2/hour")
        copied = gateway.key.request("POST", "/x", b"{}")
        assert gateway.codes([copied, copied, copied, gateway.key.request()]) == ["ok", "replayed", "replayed", "ok"]


def test_a_limited_request_does_not_use_its_idempotency_key(tmp_path, backend):
    with Front(tmp_path, backend) as gateway:
        gateway.policy("rate-release=1/hour")

        def keyed() -> str:
            return code_of(gateway.send(gateway.key.request("POST", "/x", b"{}", fields=[("idempotency-key", "one")])))

        assert code_of(gateway.send(gateway.key.request())) == "ok"
        assert keyed() == "rate-limited"
        gateway.policy("rate-release=")
        assert keyed() == "ok" and len(backend.seen) == 2


def test_all_loops_count_together(tmp_path, backend):
    with Front(tmp_path, backend, "--workers", 2) as gateway:
        gateway.policy("rate-release=40/hour")
        requests = [gateway.key.request() for _ in range(100)]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            codes = list(pool.map(lambda request: code_of(gateway.send(request)), requests))
        assert codes.count("ok") == 40 == len(backend.seen) and codes.count("rate-limited") == 60


def test_an_address_has_a_rate_before_anything_is_proved(tmp_path, backend, path):
    with Front(tmp_path, backend, *options_of(path), "--rate-address", "3/hour", "--trusted-proxies",
               "127.0.0.1") as gateway:
        def ask(client: str) -> str:
            return code_of(gateway.send(gateway.unsigned("/closed", X_Forwarded_For=client)))

        assert [ask("203.0.113.1") for _ in range(4)] == ["unsigned"] * 3 + ["rate-limited"]
        # One subscriber of IPv6 is one address; another client has its own count.
        assert [ask(f"2001:db8::{n}") for n in range(1, 5)] == ["unsigned"] * 3 + ["rate-limited"]
        assert ask("2001:db8:0:1::1") == "unsigned"
        # The authority's routes count, too.
        health = "/countersign/v1/health"
        assert gateway.send(gateway.unsigned(health, X_Forwarded_For="198.51.100.1")).status == 200
        assert gateway.send(gateway.unsigned(health, X_Forwarded_For="203.0.113.1")).status == 429


def test_rates_of_an_app_count_the_addresses_of_open_routes(tmp_path, backend):
    with Front(tmp_path, backend) as gateway:
        gateway.policy("rate-address=2/hour")
        answers = [gateway.send(gateway.unsigned()) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 429] and len(backend.seen) == 2
        assert answers[0].get("ratelimit").startswith('"address";r=1;')


@pytest.mark.parametrize("of", ["server", "app"])
def test_addresses(tmp_path, backend, path, of):
    lists = {"allow-addresses": "203.0.113.0/24,2001:db8::/32,127.0.0.0/8", "deny-addresses": "203.0.113.7"}
    options = [part for name, value in lists.items() for part in (f"--{name}", value)] if of == "server" else []
    with Front(tmp_path, backend, *options_of(path), "--trusted-proxies", "127.0.0.1", *options) as gateway:
        if of == "app":
            gateway.policy(*[f"{name}={value}" for name, value in lists.items()])

        def ask(client: str, request: bytes) -> str:
            return code_of(gateway.send(request.replace(b"\r\nHost:", b"\r\nX-Forwarded-For: %s\r\nHost:" % client.encode(),
                                                        1)))

        for client, code in [("::ffff:203.0.113.9", "ok"), ("203.0.113.7", "address-denied"), ("2001:db9::1", "address-denied")]:
            seen = len(backend.seen)
            assert ask(client, gateway.key.request()) == code, client
            assert ask(client, gateway.unsigned()) == code, client
            assert len(backend.seen) - seen == (2 if code == "ok" else 0), client
        # The authority's own routes, as well: a session cannot be begun from elsewhere.
        body = b'{"account":"a","password":"b","device":{"id":"x"}}'
        login = gateway.key.request("POST", "/countersign/v1/login/password", body,
                                    fields=[("content-type", "application/json")])
        assert ask("203.0.113.7", login) == "address-denied"


def test_maintenance(tmp_path, backend, path):
    with Front(tmp_path, backend, *options_of(path)) as gateway:
        gateway.add_app("other")
        other = gateway.add_release("other")
        told = json.loads(gateway.admin("maintenance", "on", "--app", "demo", "--retry-after", "5m", "--json").out)
        assert told == {"apps": [{"app": "demo", "maintenance": True, "retry_after": 300}]}
        answer = gateway.send(gateway.key.request())
        problem = json.loads(answer.body)
        assert (answer.status, problem["code"], answer.get("retry-after")) == (503, "maintenance", "300")
        assert gateway.codes([gateway.unsigned(), other.request()]) == ["maintenance", "ok"]
        # The app's own words for it.
        gateway.admin("app", "messages", "demo", "--language", "default", "--file", "-",
                      stdin='{"maintenance": "Back at noon."}')
        assert json.loads(gateway.send(gateway.key.request()).body)["detail"] == "Back at noon."
        # The authority's routes, and the operator's listener, go on.
        assert gateway.send(gateway.unsigned("/countersign/v1/health")).status == 200
        assert gateway.get("/ready").status == 200
        status = json.loads(gateway.admin("maintenance", "status", "--json").out)["apps"]
        assert {app["app"]: app["maintenance"] for app in status} == {"demo": True, "other": False}
        gateway.admin("maintenance", "on", "--all")
        assert gateway.codes([other.request()]) == ["maintenance"]
        gateway.admin("maintenance", "off", "--all")
        assert gateway.codes([gateway.key.request(), other.request(), gateway.unsigned()]) == ["ok"] * 3
        assert len(backend.seen) == 4
        audit = gateway.admin("audit", "list", "--json").out.splitlines()
        assert sum("maintenance" in entry for entry in audit) >= 3


def allows(answer) -> dict[str, str]:
    return {name.removeprefix("access-control-"): value for name, value in answer.fields if name.startswith("access-control-")}


def test_pages_of_allowed_origins_may_call(tmp_path, path):
    def own_rules(seen: Seen, sock) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\naccess-control-allow-credentials: true\r\n"
                     b"Content-Length: 2\r\n\r\nok")

    with Backend(own_rules) as backend, Front(tmp_path, backend, *options_of(path)) as gateway:
        def preflight(origin: str, method: str = "PUT", target: str = "/x"):
            return gateway.send(gateway.unsigned(target, "OPTIONS", Origin=origin, Access_Control_Request_Method=method,
                                                 Access_Control_Request_Headers="signature,x-a"))

        # Without rules, the app's backend decides.
        assert allows(gateway.send(gateway.unsigned(Origin=PAGE)))["allow-origin"] == "*"
        gateway.policy(f"cors-origins={PAGE}", "cors-credentials=https://bank.example.com")
        seen = len(backend.seen)
        answer = preflight(PAGE)
        assert (answer.status, answer.body) == (204, b"") and answer.get("content-length") is None
        assert allows(answer) == {"allow-origin": PAGE, "allow-methods": "PUT", "allow-headers": "signature,x-a",
                                  "max-age": "600"}
        assert answer.get("vary").startswith("Origin")
        assert allows(preflight("https://bank.example.com"))["allow-credentials"] == "true"
        # Also for the authority's routes, which a page signs in at.
        assert preflight(PAGE, "POST", "/countersign/v1/login/start").status == 204
        for origin in ["https://evil.example.com", "https://app.example.com.evil.com", "null", "http://app.example.com"]:
            answer = preflight(origin)
            assert answer.status == 401 and "allow-origin" not in allows(answer), origin
        assert len(backend.seen) == seen
        for request in (gateway.key.request(fields=[("origin", PAGE)]), gateway.unsigned(Origin=PAGE)):
            answer = gateway.send(request)
            assert answer.status == 200
            assert sorted(allows(answer)) == ["allow-origin", "expose-headers"]
            assert allows(answer)["allow-origin"] == PAGE and answer.get("vary") == "Origin"
        # Another page's browser is told nothing, whatever the backend says.
        answer = gateway.send(gateway.key.request(fields=[("origin", "https://evil.example.com")]))
        assert answer.status == 200 and not allows(answer) and answer.get("vary") == "Origin"
        # A page signs in at the authority, and reads its answers.
        for request in (gateway.key.request("GET", "/countersign/v1/session", fields=[("origin", PAGE)]),
                        gateway.unsigned("/countersign/v1/time", Origin=PAGE)):
            assert allows(gateway.send(request))["allow-origin"] == PAGE
        # What was kept of the backend's answers before there were rules brings none of its fields back.
        def keyed(origin: str) -> bytes:
            return gateway.key.request("POST", "/x", b"{}", fields=[("origin", origin), ("idempotency-key", "kept")])
        gateway.policy("cors-origins=", "cors-credentials=")
        assert allows(gateway.send(keyed(PAGE)))["allow-origin"] == "*"
        gateway.policy(f"cors-origins={PAGE}")
        again = gateway.send(keyed("https://evil.example.com"))
        assert again.get("countersign-replayed") == "true" and not allows(again)
        # A page reads why its request was refused.
        stale = gateway.send(gateway.key.request(fields=[("origin", PAGE)], created=1))
        assert stale.status == 401 and allows(stale)["allow-origin"] == PAGE


def test_what_no_origin_may_be(tmp_path):
    assert run("app", "add", "demo", "--data", tmp_path / "d").returncode == 0
    for setting in ["cors-credentials=*", "cors-origins=https://a.example/", "cors-origins=a.example",
                    "cors-origins=https://A.example", "cors-origins=https://a.example:443", "rate-account=0/hour",
                    "rate-account=5/week", "rate-account=5", "rate-account=5/hour,burst=0", "allow-addresses=10.0.0.1/8",
                    "deny-addresses=x", "maintenance=on"]:
        done = run("app", "policy", "demo", "--set", setting, "--data", tmp_path / "d")
        assert done.returncode == 2 and "expected" in done.err, setting


def test_sizes_of_routes(tmp_path, backend, path):
    with Front(tmp_path, backend, *options_of(path), "--limit-held-body", 65536) as gateway:
        gateway.admin("route", "set", "demo", "/small", "--require", "signed", "--max-body", 10, "--max-head", 2048)
        gateway.admin("route", "set", "demo", "/open/small", "--require", "open", "--max-body", 10)
        request = gateway.key.request
        assert gateway.codes([request("POST", "/small", bytes(10)), request("POST", "/small", bytes(11)),
                              request("POST", "/other", bytes(11)), request("POST", "/small/x", bytes(100_000)),
                              request("GET", "/small", fields=[("x-long", "x" * 2048)]),
                              request("GET", "/other", fields=[("x-long", "x" * 2048)])]) == \
            ["ok", "too-large", "ok", "too-large", "too-large", "ok"]
        # A body whose length is not announced.
        body = b"5\r\nabcde\r\n6\r\nabcdef\r\n0\r\n\r\n"
        head = gateway.unsigned("/open/small", "POST", Transfer_Encoding="chunked")
        assert gateway.codes([head + body, gateway.unsigned("/open/small", "POST", Content_Length="3") + b"abc"]) == \
            ["too-large", "ok"]
        assert len(backend.seen) == 4
        # The body was not read: only the head was sent.
        answer = gateway.send(request("POST", "/small", bytes(5_000)).split(b"\r\n\r\n")[0] + b"\r\n\r\n", to_head=True)
        assert answer.status == 413


def test_a_reload_changes_the_rules_of_the_server(tmp_path):
    with Site(tmp_path) as site:
        assert site.gateway.send(site.gateway.key.request()).status == 200
        site.write(deny_addresses="127.0.0.0/8")
        assert site.reload()[0] == 0
        assert code_of(site.gateway.send(site.gateway.key.request())) == "address-denied"
        site.write(deny_addresses="203.0.113.0/24", rate_address="1/hour")
        assert site.reload()[0] == 0
        assert [site.gateway.send(site.gateway.key.request()).status for _ in range(2)] == [200, 429]
