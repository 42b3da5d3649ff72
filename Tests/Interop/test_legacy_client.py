"""The SDK's client of servers from before: against one that is written from the field's formulas alone, and against our gateway."""

import json
import os
import pathlib
import re
import ssl
import subprocess
import urllib.request

import pytest

import processes
from clock import Clock
from gateway import Gateway
from l5_client import kept
from old_server import FORM, OldServer
from products import peer
from test_pins import Identity
from waiting import until

DRIVER = peer("legacy")
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
        self.process = processes.start([*DRIVER, *(word for name, value in words.items() for word in (f"--{name}", value))],
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


@pytest.mark.parametrize("rung", ("base64", "hmac-md5-time"))
def test_each_rung(start, rung):
    server = start.server("form-md5", rung=rung)
    client = start.client(server)
    assert client.log_in("wrong") == {"error": "wrongCredentials", "state": "signed out: nobody"}
    assert client.log_in() == {"state": ACTIVE}
    assert json.loads(client.post()["bodies"][0])["user"] == 7
    assert [seen.problem for seen in server.seen] == [None] * 3


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_scheme(start, scheme):
    """What the server from before computes is what was sent; what a scheme does not sign is not sent."""
    server = start.server(scheme)
    client = start.client(server)
    assert client.log_in() == {"state": ACTIVE}
    form = {"method": "POST", "path": "/api", "type": FORM, "body": "z=1%2B1&a=%26&umlaut=%C3%BC"}
    text = {"method": "POST", "path": "/api?c=%C3%A9", "type": "application/json", "body": '{"Name":"gr\u00fcezi & 1+1"}'}
    signed, other = (text, form) if scheme == "auth-v4" else (form, text)
    assert json.loads(client.do("send", **signed)["bodies"][0])["user"] == 7
    assert server.seen[-1].problem is None
    if scheme in ("form-md5", "auth-v4"):
        before = len(server.seen)
        assert client.do("send", **other)["error"] == "misuse" and len(server.seen) == before


def test_a_file_is_sent_as_it_is_read(start, tmp_path):
    """Longer than what the client holds in memory for a scheme that signs inside of bodies; what auth-v1 signs of it is its MD5."""
    server = start.server("auth-v1")
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
    assert json.loads(answer["bodies"][0])["user"] == 7, answer
    first, last = server.at("/api")
    assert first.problem is None and last.problem is None, "the renewal is in between"
    assert first.body == last.body == (tmp_path / "film").read_bytes() and "body_md5" in last.form


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
            with urllib.request.urlopen(request, context=context, timeout=60) as answer:
                return answer.read()

        for path, told in (("/user/logout", {"server": "knows"}), ("", {})):
            with Client(url, tmp_path / f"vault{len(path)}", "form-md5", "md5-salt", pin=pin, logout=path) as client:
                assert client.log_in() == {"state": ACTIVE}
                kept_back = client.do("signed", method="GET", path="/kept")
                assert client.do("logOut") == told | {"state": "signed out: signedOut"}
                assert (b'"code":-100' in after(kept_back)) == bool(told), path
