"""docs/move-in.md, page by page: its commands are run as they stand, and each kind of app, played by a client of its own, signs up,
signs in, calls, renews, is replaced by a second device, is retired and signs out, as if nothing had happened."""

import hashlib
import json
import os
import re
import secrets
import subprocess
import time
import urllib.parse

import pytest

import auth_clients
from clock import Clock
from gateway import ROOT, Gateway
from l1_client import signed as form_signed
from old_shop import Shop
from ports import reserve_port
from test_decide import Proxy
from waiting import until
from wire import Connection

HOST = "api.example.com"
FORM = "application/x-www-form-urlencoded"
SECRET = "their secret of today"
PAGE = (ROOT / "docs/move-in.md").read_text()


def pages() -> dict[int, list[str]]:
    """The blocks of commands of each page, by its number."""
    found = {}
    for section in PAGE.split("\n## ")[1:]:
        number = re.match(r"(\d)\. ", section)
        assert number, section[:40]
        found[int(number[1])] = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return found


class Moved:
    """A shop that moves in by one page, and the gateway in front of it."""

    def __init__(self, number: int, folder, *, asked_by: str | None = None):
        """`asked_by`: the proxy that asks and passes on itself, in the place of a gateway that does."""
        self.folder, (first, *self.later) = folder, pages()[number]
        (folder / "their-private-key").write_text(SECRET)
        (folder / "their-accounts.csv").write_text(
            f"name,user_id,rung,value\n137,41,md5,{hashlib.md5(b'older').hexdigest()}\n")
        self.shop = Shop(believes_the_gateway=number == 4)
        commands, serve = [], None
        for line in first.strip().split("\n"):
            if line.startswith("countersign serve "):
                serve = line.split()[2:]
            else:
                commands.append(line)
        assert serve, "the page says how to serve"
        options = dict(zip(serve[::2], serve[1::2], strict=True))
        port = reserve_port()
        options |= {"--listen": f"127.0.0.1:{port}", "--tls": "off"}
        if asked_by:
            options |= {"--decide": asked_by, "--trusted-proxies": "127.0.0.1"}
        if "--upstream" in options:
            options["--upstream"] = f"http://127.0.0.1:{self.shop.port}"
        self.gateway = Gateway(folder / "gateway", *[word for pair in options.items() for word in pair], clock=Clock(folder))
        self.run("\n".join(commands))
        self.gateway.start()
        self.proxy, self.port = None, port
        if "--decide" in options:
            self.port = reserve_port()
            self.proxy = Proxy(options["--decide"], folder / "proxy", self.gateway, self.shop, self.port)

    def run(self, block: str) -> str:
        script = f'set -e\ncountersign() {{ "{self.gateway.binary}" "$@"; }}\n{block}'
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "COUNTERSIGN_DATA": str(self.gateway.data)})
        assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
        return done.stdout

    def retire(self, block: str) -> None:
        """As the page says, which warns first; and a month later."""
        assert "--warn-at now --at +30d" in block
        self.run(block)
        self.run(block.replace("--warn-at now --at +30d", "--at now"))

    def meter(self, holds) -> None:
        def told() -> dict:
            return json.loads(self.gateway.admin("meter", "shop", "--json").out)

        until(lambda: holds(told()), told)

    def close(self) -> None:
        if self.proxy:
            self.proxy.stop()
        self.gateway.stop()
        self.shop.__exit__()


class App:
    """What all of them have: accounts by phone number, a token, and a page for each thing that can happen."""

    paths = {"signup": "/user/register", "login": "/user/login", "token": "/user/token", "logout": "/user/logout"}

    def __init__(self, moved: Moved):
        self.moved, self.token, self.login_token, self.user = moved, "", "", 0

    def send(self, method: str, target: str, fields: dict[str, str], body: bytes = b"") -> dict:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {HOST}", *[f"{name}: {value}" for name, value in fields.items()]]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        with Connection(self.moved.port, None, 20) as connection:
            connection.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            self.answer = connection.answer()
        return json.loads(self.answer.body) if self.answer.body.startswith(b"{") else {"status": self.answer.status}

    def call(self, path: str, parameters: dict[str, str]) -> dict:
        raise NotImplementedError

    def signs_up(self, name: str, password: str) -> dict:
        return self.call(self.paths["signup"], {"phoneNo": name, "pwd": password})

    def logs_in(self, name: str, password: str) -> dict:
        said = self.call(self.paths["login"], {"phoneNo": name, "pwd": password})
        self.user, self.token = said["userId"], said.get("token", "")
        self.login_token = said.get("loginToken", "")
        return said

    def renews(self) -> dict:
        said = self.call(self.paths["token"], {"loginToken": self.login_token})
        self.token = said.get("token", self.token)
        return said

    def orders(self) -> dict:
        return self.call("/orders", {"page": "1"})

    def logs_out(self) -> dict:
        return self.call(self.paths["logout"], {})

    @staticmethod
    def is_login_page(said: dict) -> bool:
        return said.get("err", {}).get("code") == -100


class FormApp(App):
    """Signs each form; `sign` is an MD5."""

    def call(self, path: str, parameters: dict[str, str]) -> dict:
        sent = dict(parameters)
        if self.token and path != self.paths["login"]:
            sent |= {"userId": str(self.user), "token": self.token}
        form = form_signed(sent, "THEIR_APP_ID", SECRET, "ios", "2.3", now=time.time() + 8 * 3600)
        return self.send("POST", path, {"Content-Type": FORM}, urllib.parse.urlencode(form).encode())


class HmacApp(App):
    """auth-v1: JSON bodies, parameters in the query; the token as a bearer."""

    def call(self, path: str, parameters: dict[str, str]) -> dict:
        method, body = ("GET", b"") if path == "/orders" else ("POST", json.dumps(parameters).encode())
        query = {"auth_key": "THEIR_KEY", "auth_timestamp": str(int(time.time())), "auth_version": "1.0",
                 "rnd": secrets.token_hex(4)}
        if body:
            query["body_md5"] = hashlib.md5(body).hexdigest()
        joined = "&".join(f"{name}={value}" for name, value in sorted(query.items()))
        query["auth_signature"] = auth_clients.mac(SECRET, f"{method}\n{path}\n{joined}")
        fields = {"Content-Type": "application/json"} if body else {}
        if self.token:
            fields["Authorization"] = f"Bearer {self.token}"
        return self.send(method, f"{path}?{urllib.parse.urlencode(query)}", fields, body)


class TokenApp(App):
    """Signs nothing; the backend's token is a form field."""

    def call(self, path: str, parameters: dict[str, str]) -> dict:
        sent = parameters | ({"token": self.token} if self.token and path != self.paths["login"] else {})
        return self.send("POST", path, {"Content-Type": FORM}, urllib.parse.urlencode(sent).encode())


class TwoTokenApp(App):
    """Signs nothing; the MD5 of a password, a login token and a token for two hours, alone; renews and says its version."""

    def call(self, path: str, parameters: dict[str, str]) -> dict:
        fields = {"Content-Type": FORM, "X-App-Version": "4.1"}
        sent = parameters | {"plat": "ios"}
        if "pwd" in sent:
            sent["pwd"] = hashlib.md5(sent["pwd"].encode()).hexdigest()
        if self.token and path not in (self.paths["login"], self.paths["signup"], self.paths["token"]):
            fields["Authorization"] = f"Bearer {self.token}"
        return self.send("POST", path, fields, urllib.parse.urlencode(sent).encode())

    @staticmethod
    def is_login_page(said: dict) -> bool:
        return said.get("err", {}).get("code") == -100 or said.get("code") in ("session-ended", "unsigned")


class CookieApp(App):
    """Signs nothing; JSON, and the backend's cookie."""

    cookie = ""

    def call(self, path: str, parameters: dict[str, str]) -> dict:
        fields = {"Cookie": f"sid={self.cookie}"} if self.cookie else {}
        if path == "/orders":
            said = self.send("GET", path, fields)
        else:
            said = self.send("POST", path, fields | {"Content-Type": "application/json"}, json.dumps(parameters).encode())
        cookie = self.answer.get("set-cookie")
        if cookie:
            self.cookie = re.match("sid=([0-9a-f]+);", cookie)[1]
        return said


def lives(moved: Moved, kind: type[App]) -> App:
    """A day in its life. Nothing of it is new to the app."""
    shop, first, second = moved.shop, kind(moved), kind(moved)
    assert first.signs_up("138", "secret") == {"userId": 1}
    assert first.signs_up("138", "other")["userId"] == 0
    assert first.logs_in("138", "wrong")["userId"] == 0
    assert first.is_login_page(first.orders())
    assert first.logs_in("138", "secret")["userId"] == 1
    assert first.orders() == {"orders": [100], "userId": 1}
    shop.expire()
    assert first.is_login_page(first.orders())
    assert first.renews().get("token") and first.orders()["orders"] == [100]
    assert second.logs_in("138", "secret")["userId"] == 1 and second.orders()["orders"] == [100]
    assert first.is_login_page(first.orders()) and first.is_login_page(first.renews())
    assert second.logs_out() == {"result": 1} and second.is_login_page(second.orders())
    assert second.logs_in("138", "secret")["userId"] == 1 and second.orders()["orders"] == [100]
    return second


@pytest.fixture
def moved(request, tmp_path):
    number, *asked_by = request.param if isinstance(request.param, tuple) else (request.param,)
    made = Moved(number, tmp_path, asked_by=asked_by[0] if asked_by else None)
    yield made
    made.close()


@pytest.mark.parametrize("moved", [1], indirect=True)
def test_page_1(moved):
    app = lives(moved, FormApp)
    seen = moved.shop.seen[-1][2]
    assert seen["countersign-app"] == "shop" and seen["countersign-version"] == "2.3"
    sent = len(moved.shop.seen)
    moved.run(moved.later[0])
    moved.retire(moved.later[1])
    gone = app.orders()
    assert gone["err"]["code"] == -99 and gone["err"]["eventId"] == "https://apps.example.com/shop"
    assert len(moved.shop.seen) == sent
    moved.meter(lambda told: told["releases"][0]["accepted"] > 10)


@pytest.mark.parametrize("moved", [2], indirect=True)
def test_page_2(moved):
    app = lives(moved, HmacApp)
    assert moved.shop.seen[-1][2]["countersign-scheme"] == "auth-v1"
    moved.run(moved.later[0])
    moved.retire(moved.later[1])
    sent = len(moved.shop.seen)
    assert app.orders()["code"] == "update-required" and len(moved.shop.seen) == sent


@pytest.mark.parametrize("moved, kind", [(3, TokenApp), (3, CookieApp)], indirect=["moved"])
def test_page_3(moved, kind):
    app = lives(moved, kind)
    seen = moved.shop.seen[-1][2]
    assert "countersign-app" not in seen and seen["countersign-client"] == "127.0.0.1"
    moved.meter(lambda told: told["unsigned"] and told["unsigned"][0]["open"] > 10)
    moved.run(moved.later[0])
    moved.run(moved.later[1])
    # Observed, nothing has changed for it.
    assert app.orders()["orders"] == [100] and moved.shop.seen[-1][2]["countersign-verdict"] == "unsigned"
    moved.meter(lambda told: told["unsigned"][0]["would_refuse_by_code"] == {"unsigned": 1})
    sent = len(moved.shop.seen)
    moved.run(moved.later[2])
    assert app.orders()["code"] == "unsigned" and len(moved.shop.seen) == sent


@pytest.mark.parametrize("moved", [4], indirect=True)
def test_page_4(moved):
    first, second, older = TwoTokenApp(moved), TwoTokenApp(moved), TwoTokenApp(moved)
    # Existing accounts remain; of a new one the backend is told the name, and it makes its own record.
    assert older.logs_in("137", "older")["userId"] == 41 and older.orders() == {"orders": [4100], "userId": 41}
    made = first.signs_up("138", "secret")["userId"]
    assert made > 2_000_000_000 and first.signs_up("138", "other")["userId"] == 0
    assert first.logs_in("138", "wrong")["userId"] == 0 and first.is_login_page(first.orders())
    assert first.logs_in("138", "secret")["userId"] == made
    assert first.orders() == {"orders": [4200], "userId": 42}
    seen = moved.shop.seen[-1][2]
    assert seen["countersign-scheme"] == "token" and seen["countersign-version"] == "4.1" and "authorization" not in seen
    # The token runs out, the login token gets a new one, and the old one is good for nothing.
    moved.gateway.admin("app", "policy", "shop", "--set", "token-lifetime=1s")
    assert first.logs_in("138", "secret")["userId"] == made
    moved.gateway.admin("app", "policy", "shop", "--set", "token-lifetime=")
    moved.gateway.clock.advance(2.1)
    assert first.orders()["code"] == "token-expired"
    assert first.renews().get("token") and first.orders()["orders"] == [4200]
    assert second.logs_in("138", "secret")["userId"] == made and second.orders()["orders"] == [4200]
    assert first.is_login_page(first.orders()) and first.is_login_page(first.renews())
    assert second.call("/user/password", {"phoneNo": "138", "pwd": "secret", "newPassword": hashlib.md5(b"new").hexdigest()})["userId"] == made
    assert second.logs_in("138", "secret")["userId"] == 0 and second.logs_in("138", "new")["userId"] == made
    assert second.logs_out() == {"result": 1} and second.is_login_page(second.orders())
    assert second.is_login_page(second.renews())
    assert second.logs_in("138", "new")["userId"] == made and second.orders()["orders"] == [4200]
    # None of it reached the backend but the calls.
    assert {path for _, path, _ in moved.shop.seen} == {"/orders"}
    moved.run(moved.later[0])
    moved.retire(moved.later[1])
    sent = len(moved.shop.seen)
    gone = second.orders()
    assert gone["code"] == "update-required" and gone["update_url"] == "https://apps.example.com/shop"
    # A version that was not added is accepted until the scheme is disabled.
    fields = {"Content-Type": FORM, "Authorization": f"Bearer {second.token}", "X-App-Version": "3.9"}
    assert second.send("POST", "/orders", fields, b"page=1")["orders"] == [4200]
    moved.run(moved.later[2])
    assert second.send("POST", "/orders", fields, b"page=1")["code"] == "scheme-not-allowed" or second.answer.status == 401
    assert len(moved.shop.seen) == sent + 1


@pytest.mark.parametrize("moved", [5], indirect=True)
def test_page_5(moved):
    app = lives(moved, CookieApp)
    seen = moved.shop.seen[-1][2]
    assert "countersign-app" not in seen and seen["countersign-checked"] == "nothing"
    made = json.loads(moved.gateway.admin("release", "add", "shop", "--platform", "ios", "--version", "2.1", "--json").out)
    from signing import ReleaseKey
    key = ReleaseKey(made["key_id"], made["secret"], HOST)

    def signed(target: str) -> int:
        with Connection(moved.port, None, 20) as connection:
            connection.send(key.request("GET", target))
            return connection.answer().status

    assert signed("/admin/a") == 200 and moved.shop.seen[-1][2]["countersign-version"] == "2.1"
    sent = len(moved.shop.seen)
    assert app.send("GET", "/admin/a", {"Cookie": f"sid={app.cookie}"}) and app.answer.status in (401, 403)
    assert len(moved.shop.seen) == sent
    for block in moved.later:
        moved.run(block)
    app.orders()
    assert app.answer.status in (401, 403) and len(moved.shop.seen) == sent
    assert signed("/orders") == 200


@pytest.mark.parametrize("moved, kind", [((2, "nginx"), HmacApp), ((3, "nginx"), TokenApp), ((3, "nginx"), CookieApp)], indirect=["moved"])
def test_a_proof_in_the_head_is_enough_for_nginx(moved, kind):
    """The same apps, where nginx asks and passes on itself."""
    app = lives(moved, kind)
    seen = moved.shop.seen[-1][2]
    assert seen["countersign-checked"] == ("head; body=unseen" if kind is HmacApp else "nothing")
    assert seen.get("countersign-scheme") == ("auth-v1" if kind is HmacApp else None)
    sent = len(moved.shop.seen)
    moved.gateway.admin("route", "set", "shop", "/", "--require", "session")
    app.orders()
    assert app.answer.status in (401, 403) and len(moved.shop.seen) == sent


def test_tokens_alone_behind_nginx(tmp_path):
    """Its doors are the gateway's, so nginx sends those there."""
    def with_doors(proxy: Proxy, name: str) -> str:
        text = Proxy.example(proxy, name)
        assert "location /countersign/ {" in text
        return text.replace("location /countersign/ {", "location ~ ^/(countersign|user)/ {")

    class DoorsProxy(Proxy):
        example = with_doors

    moved = Moved(4, tmp_path, asked_by="nginx")
    try:
        moved.proxy.stop()
        moved.proxy = DoorsProxy("nginx", tmp_path / "doors", moved.gateway, moved.shop, moved.port)
        app, other = TwoTokenApp(moved), TwoTokenApp(moved)
        # Where values may stand in a form, the body is asked for: what is in the head is enough.
        assert app.logs_in("137", "older")["userId"] == 41 and app.orders() == {"status": 403}
        assert app.answer.get("countersign-refusal") == "decide-needs-body"
        moved.gateway.admin("app", "policy", "shop", "--set", "token-in=bearer", "--set", "user-in=none", "--set",
                            "release-in=header:x-app-version", "--set", "platform-in=")
        assert app.orders() == {"orders": [4100], "userId": 41}
        seen = moved.shop.seen[-1][2]
        assert seen["countersign-scheme"] == "token" and seen["countersign-account"] == "id:41"
        assert seen["countersign-checked"] == "head; body=unseen"
        assert app.renews()["token"] and app.orders()["orders"] == [4100]
        assert other.logs_in("137", "older")["userId"] == 41 and other.orders()["orders"] == [4100]
        sent = len(moved.shop.seen)
        app.orders()
        assert app.answer.status == 401 and app.answer.get("countersign-refusal") == "session-ended" and len(moved.shop.seen) == sent
        assert other.logs_out() == {"result": 1}
        other.orders()
        assert other.answer.status == 401 and len(moved.shop.seen) == sent
    finally:
        moved.close()


def test_every_page_has_its_app():
    assert set(pages()) == {int(name.removeprefix("test_page_")) for name in globals() if name.startswith("test_page_")}
