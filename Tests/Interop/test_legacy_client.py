"""The SDK's client of servers from before: against one that is written from the field's formulas alone, and against our gateway."""

import json
import os
import pathlib
import re
import ssl
import subprocess
import time
import urllib.request

import pytest

import processes
from clock import Clock
from gateway import Gateway
from l5_client import RUNGS, kept
from old_server import FORM, OldServer
from products import product
from test_pins import Identity
from waiting import until

DRIVER = product("legacy-driver")
SALT, KEY, PASSWORD = "gdyb21LQTcIANtvYMT7QVQ==", "qianqian", "p@ss w+rd 1%?"
APP_ID, SECRET = "Zk3vQp81LmTn0aWd", "hUe7cXs2Rb9yKfJ4"
SCHEMES = ("form-md5", "auth-v1", "auth-v2", "auth-v4", "none")
IDENTITY, SPARE = Identity("old server"), Identity("a key in a safe")
ACTIVE = "active: anna 7"


class Client:
    """A process with one `LegacyClient`, which lives from order to order."""

    def __init__(self, url: str, vault: pathlib.Path, scheme: str = "none", rung: str = "md5", *, pin: str = IDENTITY.pin,
                 backup: str = SPARE.pin, **options: str):
        words = {"url": url, "vault": str(vault), "scheme": scheme, "rung": rung, "id": APP_ID, "secret": SECRET, "salt": SALT,
                 "key": KEY, "pin": pin, "backup": backup} | options
        self.process = processes.start([DRIVER, *(word for name, value in words.items() for word in (f"--{name}", value))],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def begin(self, do: str, **order: str) -> None:
        self.process.stdin.write(json.dumps({"do": do} | order) + "\n")
        self.process.stdin.flush()

    def end(self) -> dict:
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def do(self, do: str, **order: str) -> dict:
        self.begin(do, **order)
        return self.end()

    def log_in(self, password: str = PASSWORD) -> dict:
        return self.do("logIn", name="anna", password=password)

    def post(self, path: str = "/api", body: str = "", **order: str) -> dict:
        return self.do("send", method="POST", path=path, body=body, **order)


@pytest.fixture
def start(tmp_path):
    """Starts servers and clients, and ends them."""
    ended = []

    def server(scheme: str = "none", **options) -> OldServer:
        running = OldServer(tmp_path, IDENTITY, scheme, APP_ID, SECRET, salt=SALT, key=KEY, **options).__enter__()
        ended.append(running)
        running.add("anna", 7, PASSWORD)
        return running

    def client(server: OldServer, vault: str = "vault", **options) -> Client:
        running = Client(server.url, tmp_path / vault, server.scheme, server.rung, **options)
        ended.append(running)
        return running

    start.server, start.client = server, client
    yield start
    for running in reversed(ended):
        running.__exit__()


def away_from_the_minute_s_end() -> None:
    if time.time() % 60 > 55:
        time.sleep(61 - time.time() % 60)  # lint: the minute is the client's own


@pytest.mark.parametrize("rung", RUNGS)
def test_each_rung(start, rung):
    away_from_the_minute_s_end()
    server = start.server("form-md5", rung=rung)
    client = start.client(server)
    assert client.log_in("wrong") == {"error": "wrongCredentials", "state": "signed out: nobody"}
    assert client.log_in() == {"state": ACTIVE}
    assert json.loads(client.post()["bodies"][0])["user"] == 7
    assert [seen.problem for seen in server.seen] == [None] * 3


REQUESTS = {
    "a GET": {"method": "GET", "path": "/api?b=2&a=x%20y&c=%C3%A9"},
    "a form": {"method": "POST", "path": "/api", "type": FORM, "body": "z=1%2B1&a=%26&umlaut=%C3%BC"},
    "JSON": {"method": "POST", "path": "/api", "type": "application/json", "body": '{"Name":"gr\u00fcezi & 1+1","a":"b/c"}'},
}
NOT_SIGNED = {("form-md5", "JSON"), ("auth-v4", "a form")}


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_scheme(start, scheme, request_):
    """What the server from before computes is what was sent; what a scheme does not sign is not sent."""
    server = start.server(scheme)
    client = start.client(server)
    assert client.log_in() == {"state": ACTIVE}
    before = len(server.seen)
    answer = client.do("send", **REQUESTS[request_])
    if (scheme, request_) in NOT_SIGNED:
        assert answer["error"] == "misuse" and len(server.seen) == before
        return
    assert json.loads(answer["bodies"][0])["user"] == 7, answer
    assert server.seen[-1].problem is None


@pytest.mark.parametrize("scheme", ["form-md5", "auth-v1"])
def test_a_signed_request_for_another_http_stack(start, scheme):
    server = start.server(scheme)
    client = start.client(server)
    client.log_in()
    signed = client.do("signed", method="GET", path="/api?a=1")
    context = __import__("ssl").create_default_context(cadata=IDENTITY.pem.decode())
    request = urllib.request.Request(signed["url"], headers=dict(signed["fields"]))
    with urllib.request.urlopen(request, context=context, timeout=20) as answer:
        assert json.load(answer)["user"] == 7


@pytest.mark.parametrize("scheme", ["auth-v1", "auth-v2", "none"])
def test_a_file_is_sent_as_it_is_read(start, tmp_path, scheme):
    """Longer than what the client holds in memory for a scheme that signs inside of bodies; what auth-v1 signs of it is its MD5."""
    server = start.server(scheme)
    judge = server.judge

    def short_answer(seen):
        status, body = judge(seen)
        return (status, {"user": body["user"]}) if seen.path == "/api" and "user" in body else (status, body)

    server.judge = short_answer
    client = start.client(server)
    client.log_in()
    (tmp_path / "film").write_bytes(os.urandom(1 << 20) * 17)
    server.expire()
    answer = client.do("send", method="POST", path="/api", type="video/mp4", file=str(tmp_path / "film"))
    assert "bodies" in answer, answer
    assert json.loads(answer["bodies"][0])["user"] == 7, answer
    first, last = server.at("/api")
    assert first.problem is None and last.problem is None, "the renewal is in between"
    assert first.body == last.body == (tmp_path / "film").read_bytes()
    assert ("body_md5" in last.form) == (scheme == "auth-v1")


def test_a_long_answer_goes_into_a_file_and_a_refusal_does_not(start, tmp_path):
    server = start.server("form-md5")
    judge = server.judge

    def long_answer(seen):
        status, body = judge(seen)
        return (status, {"film": "a" * 3_000_000}) if seen.path == "/film" and "user" in body else (status, body)

    server.judge = long_answer
    client = start.client(server)
    client.log_in()
    server.expire()
    film = tmp_path / "film"
    assert client.do("download", method="GET", path="/film", to=str(film))["status"] == 200
    assert len(json.loads(film.read_text())["film"]) == 3_000_000
    assert len(server.at("/login/token.php")) == 1, "what refused the first copy was told from content"
    server.retired = "https://example.com/new"
    assert client.do("download", method="GET", path="/film", to=str(tmp_path / "none"))["error"] == "updateRequired"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("scheme", ["form-md5", "auth-v1", "none"])
def test_fifty_at_the_token_s_end(start, scheme):
    server = start.server(scheme)
    client = start.client(server)
    client.log_in()
    server.expire()
    answers = client.post(body="a=1", type=FORM, count="50")["bodies"]
    assert len(answers) == 50 and all(json.loads(answer)["user"] == 7 for answer in answers)
    assert len(server.at("/login/token.php")) == 1
    granted = [seen for seen in server.at("/api") if seen.token in server.tokens]
    assert len(granted) == 50, "each is done once"
    assert any(seen.token in server.old for seen in server.at("/api")), "some were refused first"


def test_two_processes_on_one_vault_renew_once(start):
    server = start.server("form-md5")
    one = start.client(server)
    one.log_in()
    two = start.client(server)
    assert two.do("resume")["state"] == ACTIVE
    server.expire()
    for client in (one, two):
        client.begin("send", method="POST", path="/api", type=FORM, count="10")
    assert all(len(client.end()["bodies"]) == 10 for client in (one, two))
    assert len(server.at("/login/token.php")) == 1


def test_the_second_login_ends_the_first(start):
    server = start.server("form-md5")
    first, second = start.client(server, "one"), start.client(server, "two")
    first.log_in()
    second.log_in()
    answer = first.post()
    assert answer["error"] == "signedOut" and answer["state"].startswith("signed out: ")
    count = len(server.seen)
    assert first.post()["error"] == "notSignedIn"
    assert first.do("resume")["state"].startswith("signed out: ")
    assert len(server.seen) == count, "the login page waits for the user"
    assert json.loads(second.post()["bodies"][0])["user"] == 7
    assert not list(server.at("/login/token.php"))


def test_a_retired_version(start):
    server = start.server("form-md5")
    client = start.client(server)
    client.log_in()
    server.retired = "https://example.com/new"
    assert client.post() == {"error": "updateRequired", "url": server.retired, "state": f"update required: {server.retired}"}
    count = len(server.seen)
    assert client.post(caller="app")["error"] == client.log_in()["error"] == "updateRequired"
    assert len(server.seen) == count, "traffic pauses"
    server.retired = None
    assert client.do("resume")["state"] == ACTIVE
    assert json.loads(client.post()["bodies"][0])["user"] == 7


def test_a_killed_app_goes_on_and_keeps_no_password(start, tmp_path):
    server = start.server("form-md5", rung="plain-post")
    client = start.client(server)
    client.log_in()
    client.process.kill()
    again = start.client(server)
    assert again.do("resume")["state"] == ACTIVE
    assert json.loads(again.post()["bodies"][0])["user"] == 7
    again.do("logOut")
    again.process.kill()
    assert start.client(server).do("resume")["state"] == "signed out: nobody"


def test_what_signs_in_is_kept_only_where_the_app_says_so(start):
    """A server without login tokens: an expired token leads to the login page, or to a login without the
    user."""
    server = start.server("form-md5", login_tokens=False)
    plain, keeping = start.client(server, "plain"), start.client(server, "keeping", remembers="what-signs-in")
    plain.log_in()
    server.expire()
    assert plain.post()["error"] == "notSignedIn"
    keeping.log_in()
    server.expire()
    assert json.loads(keeping.post()["bodies"][0])["user"] == 7
    assert len(server.at("/login/login.php")) == 3


def test_an_earlier_version_s_session_is_gone_on_with(start):
    server = start.server("form-md5")
    server.tokens["from-the-old-keychain"] = 7
    client = start.client(server)
    assert client.do("adopt", name="anna", user="7", token="from-the-old-keychain")["state"] == ACTIVE
    assert json.loads(client.post()["bodies"][0])["user"] == 7


def test_no_password_to_a_certificate_that_was_not_pinned(start, tmp_path):
    server = start.server("form-md5")
    assert start.client(server, "open", pin="").log_in()["error"] == "certificateNotPinned"
    other = start.client(server, "other", pin=Identity("another").pin)
    assert other.log_in()["error"] == "transport"
    assert not server.seen, "not a byte of either"


def account(answer: str) -> str:
    """The caller that the gateway named to its backend, which returns what it received."""
    return json.loads(answer)["headers"]["countersign-account"]


def logged(gateway: Gateway, path: str, count: int) -> list[dict]:
    """What the gateway granted there, once it has written that many down."""
    def found() -> list[dict]:
        return [event for event in gateway.events() if (event.get("path"), event.get("code")) == (path, "ok")]

    until(lambda: len(found()) >= count, found)
    return found()


class TestTheMove:
    """The server becomes ours; the client, and the process it lives in, stay what they are."""

    @pytest.fixture
    def moved(self, tmp_path):
        gateway = Gateway(tmp_path / "gateway", clock=Clock(tmp_path))
        with gateway:
            pin = re.search(r"sha256/\S+", gateway.started[-1]).group(0)
            gateway.add_app("old", schemes="form-md5", legacy_login="on", legacy_session="authority",
                            legacy_renewal="on", legacy_salt=SALT, legacy_key=KEY, slots="single")
            gateway.admin("release", "add", "old", "--platform", "ios", "--version", "2.0", "--scheme", "form-md5",
                          "--key-id", APP_ID, "--secret", SECRET)
            rows = [{"name": "anna", "user_id": 7, "rung": "md5-salt", "value": kept("md5-salt", PASSWORD, SALT, KEY)}]
            gateway.admin("account", "import", "old", "-", stdin="\n".join(map(json.dumps, rows)))
        yield gateway, pin
        gateway.__exit__()

    def test_one_client_before_and_after(self, moved, tmp_path):
        gateway, pin = moved
        with OldServer(tmp_path, IDENTITY, "form-md5", APP_ID, SECRET, rung="md5-salt", salt=SALT, key=KEY) as server:
            server.add("anna", 7, PASSWORD)
            gateway.port = server.http.server_address[1]
            client = Client(server.url, tmp_path / "vault", "form-md5", "md5-salt", backup=pin)
            assert client.log_in() == {"state": ACTIVE}
            assert json.loads(client.post()["bodies"][0])["user"] == 7
        with client:
            gateway.start()
            # Its token is not one of the gateway's: the user signs in once more.
            assert client.post()["error"] == "signedOut"
            assert client.log_in() == {"state": ACTIVE}
            assert account(client.post(body="a=1", type=FORM)["bodies"][0]) == "id:7"
            gateway.admin("app", "policy", "old", "--set", "token-lifetime=1s")
            try:
                client.log_in()
                gateway.clock.advance(2.1)
                gateway.admin("app", "policy", "old", "--set", "token-lifetime=")
                answers = client.post(count="50")["bodies"]
                assert len(answers) == 50 and {account(answer) for answer in answers} == {"id:7"}
                assert len(logged(gateway, "/api", 51)) == 51, "each is done once"
                assert len(logged(gateway, "/login/token.php", 1)) == 1
            finally:
                gateway.admin("app", "policy", "old", "--set", "token-lifetime=")

    def test_signing_out_ends_the_session_at_the_gateway(self, moved, tmp_path):
        """By the path of the app's policy: the token and the login token of the former session open nothing."""
        gateway, pin = moved
        gateway.start()
        gateway.admin("app", "policy", "old", "--set", "legacy-paths=logout:/user/logout")
        url = f"https://127.0.0.1:{gateway.port}"
        context = ssl._create_unverified_context()  # noqa: S323

        def after(order: dict) -> bytes:
            """What a request with the former token gets."""
            request = urllib.request.Request(order["url"], headers=dict(order["fields"]))
            with urllib.request.urlopen(request, context=context, timeout=20) as answer:
                return answer.read()

        for path, told in (("/user/logout", {"server": "knows"}), ("", {})):
            with Client(url, tmp_path / f"vault{len(path)}", "form-md5", "md5-salt", pin=pin, logout=path) as client:
                assert client.log_in() == {"state": ACTIVE}
                kept_back = client.do("signed", method="GET", path="/kept")
                assert client.do("logOut") == told | {"state": "signed out: signedOut"}
                assert (b'"code":-100' in after(kept_back)) == bool(told), path
