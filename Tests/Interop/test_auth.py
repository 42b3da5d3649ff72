"""Peers that are not ours speak auth-v1 (PyPI's pusher), auth-v2 (PHP) and auth-v4 (hashlib) with the gateway."""

import itertools
import json
import re
import subprocess
import time

import pusher
import pytest
from pusher.http import Request as PusherRequest

import auth_clients
from backend import Backend, Seen
from gateway import ROOT, Gateway, run
from waiting import until

KEY, SECRET = "278d425bdf160c739803", "7ad3773142a6692b25b8"
SCHEMES = ("auth-v1", "auth-v2", "auth-v4")
FORM = "application/x-www-form-urlencoded"


def as_pusher(seen: Seen, sock) -> None:
    """Stands for Pusher's API: every call is fine."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")


@pytest.fixture(scope="module")
def auth(tmp_path_factory):
    """A plain gateway with an app and a key for each scheme, before a backend that answers like Pusher."""
    with (Backend(as_pusher) as backend,
          Gateway(tmp_path_factory.mktemp("auth"), "--tls", "off", "--upstream", backend.url) as running):
        running.backend = backend
        for scheme in SCHEMES:
            running.add_app(scheme, schemes=scheme)
            running.admin("release", "add", scheme, "--platform", "ios", "--version", "1.0", "--scheme", scheme,
                          "--key-id", KEY + scheme[-1], "--secret", SECRET)
        running.client = pusher.Pusher(app_id="3", key=KEY + "1", secret=SECRET, host="127.0.0.1", port=running.port, ssl=False)
        yield running


def send(auth, method: str, target: str, fields: dict[str, str] | None = None, body: bytes = b""):
    lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{auth.port}"]
    lines += [f"{name}: {value}" for name, value in (fields or {}).items()]
    lines += [f"Content-Length: {len(body)}"] if body else []
    return auth.send(("\r\n".join(lines) + "\r\n\r\n").encode() + body)


def code(answer) -> str | None:
    """Nil where the request went through."""
    return None if answer.status == 200 else json.loads(answer.body)["code"]


# auth-v1

def test_pusher_triggers_an_event(auth):
    assert auth.client.trigger("rooms", "hello", {"text": "grüezi & 1+1"}) == {}
    seen = auth.backend.wait(1)[-1]
    assert seen.target.startswith("/apps/3/events?")
    assert json.loads(seen.body)["name"] == "hello"
    assert seen.get("countersign-scheme") == "auth-v1"
    assert auth.client.channels_info(prefix_filter="presence-", attributes=["user_count"]) == {}


def pusher_request(auth, method: str, text: str) -> tuple[str, bytes]:
    """What the library would send: target and body."""
    request = PusherRequest(auth.client._pusher_client, method, "/apps/3/events", {"name": text, "channels": ["a"]})
    query = "&".join(f"{name}={value}" for name, value in request.query_params.items())
    return f"{request.path}?{query}", (request.body or b"") if isinstance(request.body or b"", bytes) else request.body.encode()


def test_a_pusher_body_is_signed(auth):
    target, body = pusher_request(auth, "POST", "one")
    json_type = {"Content-Type": "application/json"}
    assert code(send(auth, "POST", target, json_type, body.replace(b"one", b"two"))) == "body-mismatch"
    assert code(send(auth, "POST", target, json_type)) == "body-mismatch"
    assert code(send(auth, "POST", target.replace("events", "batch_events"), json_type, body)) == "bad-signature"
    assert code(send(auth, "POST", target, json_type, body)) is None
    assert code(send(auth, "POST", target, json_type, body)) == "replayed"


@pytest.mark.parametrize(("rule", "replayed"), [("strict", {"GET", "POST"}), ("off", set())])
def test_replay_rules(auth, rule, replayed):
    auth.admin("app", "policy", "auth-v1", "--set", f"replay=auth-v1={rule}")
    count = itertools.count()

    def again(method: str) -> str | None:
        """The code of a request that is sent a second time."""
        form = {"auth_key": KEY + "1", "auth_timestamp": str(int(time.time())), "auth_version": "1.0", "rule": f"{rule}-{next(count)}"}
        joined = "&".join(f"{name}={form[name]}" for name in sorted(form))
        mac = auth_clients.mac(SECRET, f"{method}\n/a\n{joined}")
        target = f"/a?{joined}&auth_signature={mac}"
        assert code(send(auth, method, target)) is None
        return code(send(auth, method, target))

    codes = {method: "replayed" if method in replayed else None for method in ("GET", "POST")}
    # The gateway looks once a second whether a policy has changed.
    until(lambda: {method: again(method) for method in codes} == codes, "the rule holds")


# auth-v2

def php(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(["php", ROOT / "Tests/Interop/auth_v2.php", *arguments], capture_output=True, text=True,
                          timeout=60, check=False)


def signed(scheme: str, request: str, *more: str) -> str:
    done = run("sign", "--scheme", scheme, "--key-id", KEY + scheme[-1], "--secret", SECRET, *more, stdin=request)
    assert done.returncode == 0, done.err
    return done.out


@pytest.mark.parametrize("query", ["", "?a=1&Zed=x&city=Z%C3%BCrich+West&i[]=2&i[]=1&i-j=%2541&b=%2B"])
def test_php_verifies_what_we_sign(query):
    start = signed("auth-v2", f"GET /v2/items%2Fall{query} HTTP/1.1\nHost: api.example.com\n\n").split("\r\n")[0]
    method, target, _ = start.split(" ")
    assert php("verify", SECRET, method, target).stdout == "accepted"
    assert php("verify", SECRET, "POST", target).stdout == "refused"
    assert php("verify", "another", method, target).stdout == "refused"
    assert php("verify", SECRET, method, target + "&admin=1").stdout == "refused"


@pytest.mark.parametrize("form", ["", "a=x y&b=é&Zed=&i[]=b&i[]=a&c=%2541&d=50%25"])
def test_what_php_signs_is_accepted(auth, form):
    done = php("sign", SECRET, "POST", "/v2/items", form, KEY + "2")
    assert done.returncode == 0, done.stderr
    # http_build_query numbers the elements of an array; a form as clients write it does not.
    text = re.sub(r"%5B\d+%5D=", "[]=", done.stdout)
    assert code(send(auth, "POST", "/v2/items", {"Content-Type": FORM}, text.encode())) is None
    assert code(send(auth, "POST", f"/v2/items?{text}")) is None
    assert code(send(auth, "POST", f"/v2/items?{text}&admin=1")) == "bad-signature"


def test_an_old_auth_v2_request_with_a_new_timestamp(auth):
    """Why it is legacy: the time is not signed, and equal calls cannot be told apart."""
    then = int(time.time()) - 86_400 * 30
    form = auth_clients.v2(SECRET, "GET", "/a", {"x": "1"}, KEY + "2", then)
    assert code(send(auth, "GET", f"/a?{form}")) == "stale"
    renewed = form.replace(str(then), str(int(time.time())))
    assert code(send(auth, "GET", f"/a?{renewed}")) is None
    assert code(send(auth, "GET", f"/a?{renewed}")) is None
    assert code(send(auth, "GET", "/a?" + auth_clients.v2(SECRET, "GET", "/a", {}, KEY + "2", name="auth_key"))) is None


# auth-v4

BODIES = [None, {"Name": "Zoë & 1+1", "b": None, "c": True, "d": [], "e": {"x": [1, "é"]}, "f": -1.5e-7}]


@pytest.mark.parametrize("body", BODIES)
def test_an_auth_v4_client(auth, body):
    target = "/items/7?x=%2F&y=a+b"
    url = f"http://127.0.0.1:{auth.port}{target}"
    text = b"" if body is None else json.dumps(body).encode()
    fields = auth_clients.v4(SECRET, KEY + "4", "PUT", url, body)
    assert code(send(auth, "PUT", target, fields, text)) is None
    assert code(send(auth, "POST", target, fields, text)) == "bad-signature"
    assert code(send(auth, "PUT", target + "x", fields, text)) == "bad-signature"
    assert code(send(auth, "PUT", target, fields, b'{"another": 1}')) == "bad-signature"
    assert code(send(auth, "PUT", target, fields, b"[1]")) == "malformed"
    stale = auth_clients.v4(SECRET, KEY + "4", "PUT", url, body, time.time() - 12 * 3600)
    assert code(send(auth, "PUT", target, stale, text)) == "stale"


def test_auth_v4_behind_a_proxy(auth):
    """`public-url` says where clients see what came here by another name."""
    auth.add_app("proxied", schemes="auth-v4", public_url="https://api.example.com")
    auth.admin("release", "add", "proxied", "--platform", "ios", "--version", "1.0", "--scheme", "auth-v4",
               "--key-id", "proxied", "--secret", SECRET)

    def there() -> dict:
        return auth_clients.v4(SECRET, "proxied", "GET", "https://api.example.com/a?b", None)

    # The gateway looks once a second whether keys have changed.
    until(lambda: code(send(auth, "GET", "/a?b", there())) is None, "the release is known")
    here = auth_clients.v4(SECRET, "proxied", "GET", f"http://127.0.0.1:{auth.port}/a?b", None)
    assert code(send(auth, "GET", "/a?b", here)) == "bad-signature"


# The commands

@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_commands(auth, scheme, tmp_path):
    request = 'POST /a?x=1 HTTP/1.1\nHost: h.example\n\n{"a": [1]}'
    given = ("--scheme", scheme, "--key-id", KEY + scheme[-1], "--secret", SECRET)
    text = signed(scheme, request)
    assert run("verify", *given, stdin=text).returncode == 0
    explained = run("explain", *given, stdin=text)
    assert explained.returncode == 0
    assert "string to sign" in explained.out
    assert SECRET not in explained.out
    assert run("verify", *given, stdin=text.replace("x=1", "x=2")).returncode == 1

    environment = {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    done = run("profile", "add", "p", "--url", auth.url, "--key-id", KEY + scheme[-1], "--scheme", scheme,
               "--secret-stdin", stdin=SECRET + "\n", environment=environment)
    assert done.returncode == 0, done.err
    json_type = ("-H", "Content-Type: application/json")
    for more in ([], ["-d", '{"a": [1]}', *json_type], *([["-d", "a=1&b=x+y"]] if scheme != "auth-v4" else [])):
        done = run("request", "/call", "--profile", "p", "-X", "PUT", *more, environment=environment)
        assert done.returncode == 0, done.err + done.out


@pytest.mark.parametrize(("scheme", "is_warned"), [("auth-v1", False), ("auth-v2", True)])
def test_adding_a_release_says_what_cannot_be_refused(auth, scheme, is_warned):
    done = auth.admin("release", "add", scheme, "--platform", "android", "--version", "1.0", "--scheme", scheme)
    assert ("a replay cannot be told" in done.err) == is_warned, done.err


def test_signs_of_two_schemes(auth):
    form = auth_clients.v2(SECRET, "GET", "/a", {}, KEY + "2")
    fields = auth_clients.v4(SECRET, KEY + "4", "GET", f"{auth.url}/a?{form}", None)
    assert code(send(auth, "GET", f"/a?{form}", fields)) == "malformed"
