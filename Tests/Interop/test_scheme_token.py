"""Apps that send a token and no signature: what scheme `token` admits and refuses, and what the backend sees."""

import json
import time
import urllib.parse

import pytest

from backend import Backend
from clock import Clock
from gateway import Gateway, run
from l1_client import signed
from waiting import until
from wire import Answer

APP_ID, PRIVATE_KEY = "Zk3vQp81LmTn0aWd", "hUe7cXs2Rb9yKfJ4"
PLACES = "bearer,form:token,query:token,cookie:sid,header:X-Token"
VERSIONS = r"form:ver,header:X-App-Version,user-agent:/Shop\/([0-9.]+)/"
# `short` has tokens that live a second, `plain` no scheme that signs in forms, `port` one port of its host.
HOSTS = {"shop": "shop.example", "plain": "plain.example", "port": "port.example:8443", "short": "short.example",
         "off": "off.example", "theirs": "theirs.example", "one": "twins.example", "two": "twins.example"}


def answering(seen, sock) -> None:
    """The usual answer, with cookies."""
    body = b"ok"
    sock.sendall(b"HTTP/1.1 200 OK\r\nSet-Cookie: visit=7; Path=/; HttpOnly\r\nSet-Cookie: theme=dark\r\n"
                 b"Content-Length: %d\r\n\r\n" % len(body) + body)


class Place:
    """A gateway, its backend, and clients that know nothing of signatures."""

    def __init__(self, gateway: Gateway, backend: Backend):
        self.gateway, self.backend = gateway, backend
        self.count = 0

    def send(self, host: str, method: str, target: str, *fields: tuple[str, str], body: str | None = None,
             type: str = "application/x-www-form-urlencoded") -> Answer:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in fields)]
        if body is not None:
            lines += [f"Content-Type: {type}", f"Content-Length: {len(body.encode())}"]
        return self.gateway.send("\r\n".join([*lines, "", body or ""]).encode())

    def log_in(self, app: str = "shop", name: str = "ada", more: str = "", *fields: tuple[str, str]) -> dict:
        answer = self.send(HOSTS[app], "POST", "/login/login.php", *fields, body=f"username={name}&password=pw-{name}{more}")
        assert answer.status == 200, answer.body
        return json.loads(answer.body)

    def signed_login(self, name: str = "ada") -> dict:
        body = urllib.parse.urlencode(signed({"username": name, "password": f"pw-{name}"}, APP_ID, PRIVATE_KEY, "ios", "2.0"))
        return json.loads(self.send(HOSTS["shop"], "POST", "/login/login.php", body=body).body)

    def get(self, token: str | None, *fields: tuple[str, str], host: str = "shop.example", target: str = "/me") -> Answer:
        own = [("Authorization", f"Bearer {token}")] if token else []
        return self.send(host, "GET", target, *own, *fields)

    def last(self):
        return self.backend.seen[-1]

    def metered(self, app: str) -> list[dict]:
        return json.loads(self.gateway.admin("meter", app, "--json").out)["releases"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("token")
    with (
        Backend(answering) as backend,
        Gateway(folder, "--tls", "off", "--upstream", backend.url, "--login-address", "100000/1s", "--authority",
                ",".join([*dict.fromkeys(HOSTS.values()), "port.example"]), clock=Clock(folder)) as gateway,
    ):
        common = {"legacy_login": "on", "slots": "unlimited", "token_in": PLACES, "release_in": VERSIONS,
                  "platform_in": "header:X-Platform", "user_in": "form:userId,header:X-User-Id,cookie:uid"}
        for app, host in HOSTS.items():
            policy = common | {"legacy_host": host, "legacy_session": "authority",
                               "schemes": "form-md5,token" if app == "shop" else "token"}
            if app == "short":
                policy |= {"token_lifetime": "1s", "legacy_renewal": "on"}
            if app == "off":
                policy["schemes"] = "form-md5"
            if app == "theirs":
                policy["legacy_session"] = "upstream"
            gateway.add_app(app, **policy)
            rows = [{"name": name, "user_id": 100 + number, "rung": "plain-post", "value": f"pw-{name}"}
                    for number, name in enumerate(("ada", "bob", "cy"))]
            gateway.admin("account", "import", app, "-", stdin="\n".join(map(json.dumps, rows)))
        gateway.admin("release", "add", "shop", "--platform", "ios", "--version", "2.0", "--scheme", "form-md5", "--key-id",
                APP_ID, "--secret", PRIVATE_KEY)
        made = Place(gateway, backend)
        made.releases = {
            (platform, version): json.loads(
                gateway.admin("release", "add", "shop", "--platform", platform, "--version", version, "--scheme", "token",
                              "--json").out)
            for platform, version in (("ios", "1.0"), ("android", "1.0"), ("ios", "1.1"))
        }
        yield made


def code(answer: Answer) -> str:
    return "accepted" if answer.status == 200 else json.loads(answer.body)["code"]


def test_a_release_without_a_key(place):
    made = place.releases["ios", "1.0"]
    assert made["key_id"].startswith("r_") and "secret" not in made and made["scheme"] == "token"
    for option in (("--secret", "x"), ("--algorithm", "ed25519")):
        done = run("release", "add", "shop", "--platform", "ios", "--version", "9", "--scheme", "token", *option, "--data",
                place.gateway.data)
        assert (done.returncode, "has no key" in done.err) == (2, True), done.err
    done = run("release", "rotate", made["key_id"], "--data", place.gateway.data)
    assert (done.returncode, "has no key" in done.err) == (2, True), done.err


def test_each_place(place):
    host = HOSTS["plain"]
    for where in ("bearer", "form", "query", "cookie", "header", "escaped", "spaces"):
        token = place.log_in("plain")["token"]
        answer = {
            "bearer": lambda: place.send(host, "GET", "/a", ("Authorization", f"Bearer {token}")),
            "form": lambda: place.send(host, "POST", "/a", body=f"x=1&token={token}"),
            "query": lambda: place.send(host, "GET", f"/a?token={token}&x=1"),
            "cookie": lambda: place.send(host, "GET", "/a", ("Cookie", f"a=1; sid={token}; b=2")),
            "header": lambda: place.send(host, "GET", "/a", ("X-Token", token)),
            "escaped": lambda: place.send(host, "GET", f"/a?%74oken={token.replace('b_', 'b%5F', 1)}"),
            "spaces": lambda: place.send(host, "POST", "/a", ("Authorization", f"bearer   {token}"), body="x=1"),
        }[where]()
        assert answer.status == 200, (where, answer.body)
        seen = place.last()
        assert seen.get("countersign-app") == "plain" and seen.get("countersign-scheme") == "token"
        assert seen.get("countersign-account") and seen.get("countersign-session")
        assert seen.get("authorization") is None and seen.get("x-token") is None
        assert token not in repr(seen.fields), f"{where}: our token reached the backend"
        if where == "form":
            assert seen.body == f"x=1&token={token}".encode(), "a form goes on to the byte"
        if where == "query":
            assert seen.target == f"/a?token={token}&x=1"


def test_who_the_backend_is_told(place):
    token = place.log_in()["token"]
    assert place.get(token).status == 200
    assert place.last().get("countersign-account") == "id:100" and place.last().get("countersign-user-id") == "100"
    assert place.last().get("countersign-version") == "unknown"
    assert place.last().get("countersign-release") == "token:shop"


def test_no_token(place):
    before = len(place.backend.seen)
    answer = place.send(HOSTS["shop"], "GET", "/a", ("Authorization", "Bearer "))
    assert (answer.status, code(answer)) == (401, "unsigned")
    assert len(place.backend.seen) == before


def test_what_is_no_token_of_such_a_session(place):
    granted = place.log_in()
    token = granted["token"]
    other = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
    for value in (granted["loginToken"], "s_" + "A" * 22 + ".0", "eyJhbGciOi", other, token + "A", token[:-1], token.upper()):
        answer = place.get(value)
        assert (answer.status, code(answer)) == (401, "session-ended"), value
        assert place.send(HOSTS["shop"], "GET", f"/a?token={value}").status == 401
    assert place.get(token).status == 200


def test_two_tokens(place):
    token, host = place.log_in()["token"], HOSTS["shop"]
    for fields, target, body in [
        ([("Authorization", f"Bearer {token}")], f"/a?token={token}", None), ([("X-Token", token)], "/a", f"token={token}"),
        ([], f"/a?token={token}&token={token}", None), ([("Cookie", f"sid={token}; sid={token}")], "/a", None),
        # In a field where none is read it would go on to the backend.
        ([("X-Token", token), ("Authorization", f"Token {token}")], "/a", None),
        ([("X-Token", token), ("Cookie", f"other={token}")], "/a", None),
        ([], f"/a?token={token}&" + "&".join(f"a{n}=1" for n in range(1_100)), None),
    ]:
        answer = place.send(host, "POST" if body else "GET", target, *fields, body=body)
        assert (answer.status, code(answer)) == (400, "malformed"), (fields, target[:60], body)


def test_a_session_that_was_opened_under_a_signature(place):
    token = place.signed_login()["token"]
    call = urllib.parse.urlencode(signed({"token": token}, APP_ID, PRIVATE_KEY, "ios", "2.0"))
    assert b"err" not in place.send(HOSTS["shop"], "POST", "/api", body=call).body
    answer = place.get(token)
    assert (answer.status, code(answer)) == (401, "session-ended"), "leaving out the signature"
    # Not by a renewal without one either.
    login_token = place.signed_login()["loginToken"]
    renewed = json.loads(place.send(HOSTS["shop"], "POST", "/login/token.php", body=f"loginToken={login_token}").body)
    assert code(place.get(renewed["token"])) == "session-ended"


def test_a_session_from_before_token_was_allowed(place):
    granted = place.log_in("off")
    assert code(place.get(granted["token"], host=HOSTS["off"])) == "unsigned"
    place.gateway.admin("app", "policy", "off", "--set", "schemes=form-md5,token")
    assert code(place.get(granted["token"], host=HOSTS["off"])) == "session-ended"
    assert place.get(place.log_in("off")["token"], host=HOSTS["off"]).status == 200
    place.gateway.admin("app", "policy", "off", "--set", "schemes=form-md5")
    assert code(place.get(place.log_in("off")["token"], host=HOSTS["off"])) == "unsigned"


def test_a_signature_beside_the_token_of_such_a_session(place):
    """An app that signs its calls and not its login goes on as before; a wrong signature is never passed over."""
    token = place.log_in()["token"]
    call = signed({"token": token, "userId": "100"}, APP_ID, PRIVATE_KEY, "ios", "2.0")
    answer = place.send(HOSTS["shop"], "POST", "/api", body=urllib.parse.urlencode(call))
    assert place.last().get("countersign-scheme") == "form-md5" and b"err" not in answer.body
    wrong = call | {"sign": "0" * 32, "rand": "a" * 16}
    answer = json.loads(place.send(HOSTS["shop"], "POST", "/api", body=urllib.parse.urlencode(wrong)).body)
    assert answer["err"]["code"] == -3


def test_a_cookie_and_where_the_page_is_from(place):
    token, host = place.log_in()["token"], HOSTS["shop"]
    cookie = ("Cookie", f"sid={token}")
    assert place.send(host, "GET", "/a", cookie, ("Origin", "http://evil.example")).status == 200
    for origin in (f"https://{host}", f"http://{host}.evil.example", f"http://{host}:81", f"http://x@{host}", f"HTTP://{host}",
                   "http://", host, f"http://{host}/"):
        answer = place.send(host, "POST", "/a", cookie, ("Origin", origin), body="x=1")
        assert (answer.status, code(answer)) == (403, "forbidden"), origin
    assert place.send(host, "OPTIONS", "/a", cookie, body="x=1").status == 403
    for origin in (f"http://{host}", f"http://{host}:80", f"http://{host.upper()}"):
        assert place.send(host, "POST", "/a", cookie, ("Origin", origin), body="x=1").status == 200, origin
    two = [("Origin", f"http://{host}"), ("Origin", f"http://{host}")]
    assert place.send(host, "POST", "/a", cookie, *two, body="x=1").status == 403
    # Nothing adds the other places by itself.
    assert place.send(host, "POST", "/a", ("X-Token", token), ("Origin", "http://evil.example"), body="x=1").status == 200


def test_the_origin_behind_a_trusted_proxy(tmp_path):
    with Backend() as backend, Gateway(tmp_path, "--tls", "off", "--upstream", backend.url, "--trusted-proxies", "127.0.0.1",
                                       "--authority", "shop.example") as gateway:
        gateway.add_app("shop", schemes="token", legacy_login="on", legacy_session="authority", legacy_host="shop.example",
                token_in="cookie:sid")
        gateway.admin("account", "import", "shop", "-",
                stdin=json.dumps({"name": "ada", "user_id": 5, "rung": "plain-post", "value": "pw-ada"}))
        here = Place(gateway, backend)
        token = here.log_in()["token"]
        for proto, origin, status in [("https", "https", 200), ("https", "http", 403), ("http", "https", 403), (None, "http", 200)]:
            more = [("X-Forwarded-Proto", proto)] if proto else []
            answer = here.send("shop.example", "POST", "/a", ("Cookie", f"sid={token}"), ("Origin", f"{origin}://shop.example"),
                               ("X-Forwarded-For", "203.0.113.9"), *more, body="x=1")
            assert answer.status == status, (proto, origin)


def test_cookies_both_ways(place):
    token, host = place.log_in()["token"], HOSTS["shop"]
    answer = place.send(host, "GET", "/a", ("Cookie", f'theme=dark;  sid={token} ;visit=7; q="a=b"'))
    assert [value for name, value in answer.fields if name == "set-cookie"] == ["visit=7; Path=/; HttpOnly", "theme=dark"]
    assert place.last().get("cookie") == 'theme=dark; visit=7; q="a=b"'
    place.send(host, "GET", "/a", ("Cookie", f"sid={token}"))
    assert place.last().get("cookie") is None
    place.send(host, "GET", "/a", ("Cookie", f"sid={token}; theme=dark"), ("Connection", "cookie"))
    assert place.last().get("cookie") is None, "it ends here"
    place.get(token, ("Cookie", "theme=dark; visit=7"), ("X-Other", "1"), ("Content-Language", "de"))
    assert place.last().get("cookie") == "theme=dark; visit=7", "as it came"
    assert place.last().get("x-other") == "1" and place.last().get("content-language") == "de"


def test_what_no_caller_may_say(place):
    token = place.log_in()["token"]
    place.get(token, ("Countersign-Account", "7"), ("X-Forwarded-User", "root"), ("Remote-User", "root"), ("X-Real-IP", "1.2.3.4"))
    seen = place.last()
    assert [value for name, value in seen.fields if name == "countersign-account"] == [seen.get("countersign-account")]
    assert not {"x-forwarded-user", "remote-user", "x-real-ip"} & {name for name, _ in seen.fields}


def test_basic_credentials_of_the_backend_go_on_beside_a_cookie(place):
    token = place.log_in()["token"]
    assert place.send(HOSTS["shop"], "GET", "/a", ("Cookie", f"sid={token}"), ("Authorization", "Basic YTpi")).status == 200
    assert place.last().get("authorization") == "Basic YTpi"


def test_the_user_that_a_request_names(place):
    token, host = place.log_in()["token"], HOSTS["shop"]
    bearer = ("Authorization", f"Bearer {token}")
    assert place.send(host, "POST", "/a", bearer, ("X-User-Id", "100"), ("Cookie", "uid=100"), body="userId=100&x=1").status == 200
    assert place.send(host, "GET", "/a?%75serId=100", bearer).status == 200
    for expected, target, body in [
        ("session-ended", "/a?userId=101", None), ("session-ended", "/a", "userId=101"),
        ("session-ended", "/a?userId=100", "userId=101"), ("malformed", "/a?USERID=101", None), ("malformed", "/a", "userId[]=101"),
    ]:
        assert code(place.send(host, "POST" if body else "GET", target, bearer, body=body)) == expected, (target, body)
    for expected, more in (("session-ended", ("X-User-Id", "101")), ("session-ended", ("Cookie", "uid=101")),
                           ("malformed", ("Cookie", "UID=101"))):
        assert code(place.get(token, more)) == expected, more
    assert place.get(token).status == 200, "the session lives on"


class TestVersions:
    def seen(self, place, token: str, *fields: tuple[str, str], body: str | None = None) -> tuple[str, str, str]:
        bearer = ("Authorization", f"Bearer {token}")
        answer = place.send(HOSTS["shop"], "POST" if body else "GET", "/v", bearer, *fields, body=body)
        assert answer.status == 200, answer.body
        seen = place.last()
        return (seen.get("countersign-platform"), seen.get("countersign-version"), seen.get("countersign-release"))

    def test_where_it_is_read(self, place):
        token = place.log_in()["token"]
        other, ids = (("unknown", "unknown", "token:shop"), {key: made["key_id"] for key, made in place.releases.items()})
        assert self.seen(place, token) == other
        assert self.seen(place, token, ("X-App-Version", "1.1")) == ("ios", "1.1", ids["ios", "1.1"])
        assert self.seen(place, token, body="ver=1.1") == ("ios", "1.1", ids["ios", "1.1"])
        assert self.seen(place, token, ("User-Agent", "Shop/1.1 CFNetwork/1408")) == ("ios", "1.1", ids["ios", "1.1"])
        assert self.seen(place, token, ("X-App-Version", "1.0")) == other, "two platforms have it"
        android = ("android", "1.0", ids["android", "1.0"])
        assert self.seen(place, token, ("X-App-Version", "1.0"), ("X-Platform", "Android")) == android
        assert self.seen(place, token, ("X-App-Version", "9.9"), ("User-Agent", "Shop/1.1")) == other, "the first place counts"
        assert self.seen(place, token, ("X-App-Version", "x" * 2_000)) == other
        assert self.seen(place, token, ("X-App-Version", "token:shop")) == other

    def test_the_login_s_and_the_renewal_s(self, place):
        granted = place.log_in("shop", "bob", "&ver=1.0", ("X-Platform", "ios"))
        assert self.seen(place, granted["token"])[:2] == ("ios", "1.0")
        assert self.seen(place, granted["token"], ("X-App-Version", "1.0"))[:2] == ("ios", "1.0"), "on the login's platform"
        # Within ten seconds of the login a renewal is answered with the same token, and changes nothing.
        place.gateway.clock.advance(10.5)
        answer = place.send(HOSTS["shop"], "POST", "/login/token.php", ("X-App-Version", "1.1"),
                            body=f"loginToken={granted['loginToken']}")
        token = json.loads(answer.body)["token"]
        assert self.seen(place, token)[:2] == ("ios", "1.1")

    def test_retirement(self, place):
        key = place.releases["android", "1.0"]["key_id"]
        android = [("X-App-Version", "1.0"), ("X-Platform", "android")]
        granted = place.log_in("shop", "cy", "", *android)
        url = "https://example.com/update"
        place.gateway.admin("release", "retire", key, "--at", int(time.time()) - 10, "--update-url", url)
        for answer in (place.get(granted["token"], *android), place.get(granted["token"])):
            assert (answer.status, code(answer)) == (426, "update-required")
            assert json.loads(answer.body)["update_url"] == url
        answer = place.send(HOSTS["shop"], "POST", "/login/login.php", *android, body="username=cy&password=pw-cy")
        err = json.loads(answer.body)["err"]
        assert (err["code"], err["eventId"]) == (-99, url)
        impact = json.loads(place.gateway.admin("release", "impact", key, "--json").out)
        assert impact["sessions"] == 1 and impact["stage"] == "retired"
        answer = place.send(HOSTS["shop"], "POST", "/login/token.php", *android, body=f"loginToken={granted['loginToken']}")
        assert json.loads(answer.body)["err"]["code"] == -99
        assert place.get(granted["token"], ("X-App-Version", "1.1"), ("X-Platform", "ios")).status == 200

        def refused() -> dict:
            return next(line["refused_by_code"] for line in place.metered("shop") if line["key_id"] == key)

        until(lambda: refused() == {"update-required": 4}, lambda: f"two calls, a login and a renewal: {refused()}")


def test_bad_policies(place):
    for setting in ("token-in=header:Cookie", "token-in=header:Authorization", "token-in=header:countersign-app",
                    "token-in=bearer,bearer", "token-in=user-agent:/(a)/", "token-in=" + ",".join(f"form:a{n}" for n in range(9)),
                    "user-in=bearer", "release-in=user-agent:/(a*)/", "window=token=60s"):
        done = run("app", "policy", "shop", "--set", setting, "--data", place.gateway.data)
        assert done.returncode == 2, setting


def test_hosts(place):
    token = place.log_in()["token"]
    assert place.get(token, host="SHOP.Example").status == 200
    assert code(place.get(token, host=HOSTS["plain"])) == "session-ended", "another app's host"
    assert place.get(token, host="elsewhere.example").status == 400
    mine = place.log_in("port")["token"]
    assert place.get(mine, host=HOSTS["port"]).status == 200
    assert code(place.get(mine, host="port.example")) == "unsigned", "without its port it is another host"
    assert code(place.get(token, host=HOSTS["port"])) == "session-ended", "another app's token"


def test_a_host_of_two_apps_is_nobody_s(place):
    answer = place.send(HOSTS["one"], "POST", "/login/login.php", body="username=ada&password=pw-ada")
    assert code(answer) == "unsigned", "the path is the backend's"
    assert code(place.get("b_" + "A" * 43, host=HOSTS["one"])) == "unsigned"


def test_an_app_whose_tokens_are_the_backend_s(place):
    assert code(place.get("anything", host=HOSTS["theirs"])) == "unsigned"


def test_a_session_that_ended(place):
    granted = place.log_in("plain")
    host = HOSTS["plain"]
    assert place.get(granted["token"], host=host).status == 200
    session = place.last().get("countersign-session")
    place.gateway.admin("session", "revoke", session)
    answer = place.get(granted["token"], host=host)
    assert (answer.status, code(answer)) == (401, "session-ended")
    assert json.loads(answer.body)["reason"] == "revoked"


def test_a_token_that_ran_out_is_renewed(place):
    granted, host = place.log_in("short"), HOSTS["short"]
    place.gateway.clock.advance(1.1)
    answer = place.get(granted["token"], host=host)
    assert (answer.status, code(answer)) == (401, "token-expired")
    place.gateway.admin("app", "policy", "short", "--set", "token-lifetime=1h")
    answer = place.send(host, "POST", "/login/token.php", body=f"loginToken={granted['loginToken']}")
    token = json.loads(answer.body)["token"]
    assert place.get(token, host=host).status == 200
    assert code(place.get(granted["token"], host=host)) == "token-expired"


def test_a_route_that_asks_for_a_device_s_signature(place):
    token = place.log_in("plain")["token"]
    place.gateway.admin("route", "set", "plain", "/payments", "--require", "device")
    answer = place.get(token, host=HOSTS["plain"], target="/payments/1")
    assert (answer.status, code(answer)) == (403, "forbidden")
    assert code(place.get(token, host=HOSTS["plain"], target="/x/../payments")) == "malformed"
    assert place.get(token, host=HOSTS["plain"], target="/other").status == 200
    place.gateway.admin("route", "remove", "plain", "/payments")


def test_an_app_that_says_debug_is_told_the_reason(place):
    host = HOSTS["plain"]
    token = place.log_in("plain")["token"]
    wrong = lambda: json.loads(place.send(host, "GET", "/a?userId=7", ("Authorization", f"Bearer {token}")).body)  # noqa: E731
    assert "detail" not in wrong()
    place.gateway.admin("app", "policy", "plain", "--set", "debug=on")
    assert wrong()["detail"] == "userId is not the user that the token belongs to"
    place.gateway.admin("app", "policy", "plain", "--set", "debug=off")


def test_own_routes_take_no_token_alone(place):
    token = place.log_in()["token"]
    for path in ("/session", "/sessions"):
        assert code(place.get(token, target=f"/countersign/v1{path}")) == "unsigned"


def test_once(place):
    token, host = place.log_in()["token"], HOSTS["shop"]
    before = len(place.backend.seen)
    order = [("Authorization", f"Bearer {token}"), ("Idempotency-Key", "order-1")]
    first, again = (place.send(host, "POST", "/orders", *order, body="item=1") for _ in range(2))
    assert (first.status, again.status) == (200, 200) and again.get("countersign-replayed") == "true"
    assert len(place.backend.seen) == before + 1
    assert code(place.send(host, "POST", "/orders", *order, body="item=2")) == "forbidden"
    other = place.log_in("shop", "bob")["token"]
    assert place.send(host, "POST", "/orders", ("Authorization", f"Bearer {other}"), order[1], body="item=1").status == 200
    assert len(place.backend.seen) == before + 2, "another account's key is another one"
    # Equal requests without a key are two.
    for _ in range(2):
        assert place.send(host, "POST", "/orders", order[0], body="item=1").status == 200
    assert len(place.backend.seen) == before + 4


def test_bodies(place):
    token, host = place.log_in("plain")["token"], HOSTS["plain"]
    bearer = ("Authorization", f"Bearer {token}")
    large = "a" * 1_300_000
    assert place.send(host, "POST", "/a", bearer, body=large, type="image/jpeg").status == 200
    assert len(place.last().body) == len(large)
    assert place.send(host, "POST", "/a", bearer, body=f"x={large}").status == 413
    assert place.send(host, "POST", "/a", bearer, body='{"userId":1}', type="application/json").status == 200


def test_a_body_is_not_read_for_what_the_head_refuses(place):
    for token, expected in (("b_" + "A" * 43, "session-ended"), (None, "unsigned")):
        lines = [f"POST /a HTTP/1.1\r\nHost: {HOSTS['plain']}", "Content-Type: application/json", "Content-Length: 500000"]
        if token:
            lines.append(f"Authorization: Bearer {token}")
        answer = place.gateway.send(("\r\n".join(lines) + "\r\n\r\n").encode())
        assert (code(answer), answer.get("connection")) == (expected, "close")


def test_the_meter(place):
    token = place.log_in("plain")["token"]
    for _ in range(3):
        assert place.get(token, ("X-App-Version", f"made-up-{time.time_ns()}"), host=HOSTS["plain"]).status == 200
    lines = lambda: [line for line in place.metered("plain") if line["scheme"] == "token"]  # noqa: E731
    until(lambda: any(line["accepted"] >= 3 for line in lines()), lambda: f"three more accepted: {lines()}")
    found = lines()
    assert len(found) == 1, "no caller makes a row"
    assert (found[0]["key_id"], found[0]["version"], found[0]["protects"]) == ("token:plain", "unknown", "session")
    text = place.gateway.admin("meter", "plain").out
    assert "token (legacy, protects the session only)" in text
    assert {line["protects"] for line in place.metered("shop") if line["scheme"] == "form-md5"} == {"request"}


def test_offline():
    for command in ("verify", "explain", "sign"):
        done = run(command, "--scheme", "token", "--key-id", "x", "--secret", "y", stdin=b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert done.returncode == 2 and "scheme token has no signature" in done.err


def test_no_token_in_the_log(place):
    token, host = place.log_in()["token"], HOSTS["shop"]
    for target, fields in [(f"/a?token={token}", []), ("/a", [("Cookie", f"sid={token}")]), (f"/{token}", [("X-Token", token)]),
                           ("/a", [("X-Token", token), ("Cookie", f"a={token}")])]:
        place.send(host, "GET", target, *fields)
    answer = place.send(host, "GET", "/the-last")
    event = place.gateway.event(json.loads(answer.body)["instance"])
    assert event["code"] == "unsigned"
    assert token[2:] not in place.gateway.log_path.read_text()
    events = [event for event in place.gateway.events() if event.get("scheme") == "token"]
    assert events and all(event["app"] in HOSTS and "session" in event for event in events if event["code"] == "ok")
