"""Old clients sign in, sign out, sign up and change passwords at an app's own paths, under its own names; and
no other spelling of such a path reaches the backend, which would judge it by itself."""

import base64
import hashlib
import json
import secrets
import urllib.parse

import pytest

from backend import Backend
from clock import Clock
from gateway import Gateway, run
from l1_client import call, signed
from l5_client import OldClient, kept, sent

SALT, KEY, PASSWORD, OTHER = "gdyb21LQTcIANtvYMT7QVQ==", "qianqian", "p@ss w+rd 1%?", "another one"
APP_ID, PRIVATE_KEY = "Zk3vQp81LmTn0aWd", "hUe7cXs2Rb9yKfJ4"
PATHS = ("login:/user/login,logout:/user/logout,token:/user/token,signup:/user/register,"
         "password:/user/password")
NAMES = "account:phoneNo,password:pwd,new-password:newPwd,token:tok,login-token:loginTok,user:uid"
NOBODY = {"uid": 0}


class Place:
    """An app whose client was written for a backend of its own."""

    def __init__(self, running: Gateway, backend: Backend):
        self.running, self.backend = running, backend
        running.add_app("shop", schemes="form-md5,message-signatures", legacy_login="on", registration="open",
                        legacy_session="authority", legacy_salt=SALT, legacy_key=KEY, slots="unlimited",
                        legacy_paths=PATHS, legacy_names=NAMES, legacy_host="127.0.0.1")
        running.add_release("shop", "ios", "2.0", "--scheme", "form-md5", "--key-id", APP_ID, "--secret", PRIVATE_KEY)
        self.key = running.add_release("shop")
        self.ca = str(running.data / "tls/certificate.pem")
        self.client = OldClient(running.url, self.ca)

    def set(self, **policy: str) -> None:
        for key, value in policy.items():
            self.running.admin("app", "policy", "shop", "--set", f"{key.replace('_', '-')}={value}")

    def add(self, rung: str, password: str = PASSWORD) -> str:
        """An account on that rung, as an import brings it."""
        name = f"{rung}-{secrets.token_hex(4)}"
        row = {"name": name, "user_id": secrets.randbelow(1_999_999_999) + 1, "rung": rung,
               "value": kept(rung, password, SALT, KEY)}
        self.running.admin("account", "import", "shop", "-", stdin=json.dumps(row))
        return name

    def status(self, path: str, method: str = "POST", **values: str) -> tuple[int, dict]:
        status, answer, _ = self.client.call(path, urllib.parse.urlencode(values), method)
        return status, answer

    def post(self, path: str, method: str = "POST", **values: str) -> dict:
        status, answer = self.status(path, method, **values)
        assert status == 200, answer
        return answer

    def log_in(self, rung: str, name: str, password: str = PASSWORD) -> dict:
        return self.post("/user/login", "GET" if rung == "plain-get" else "POST", phoneNo=name,
                         pwd=sent(rung, password, SALT, KEY))

    def raw(self, path: str, form: str, *fields: str, host: str = "127.0.0.1"):
        """A POST of exactly these bytes."""
        lines = [f"POST {path} HTTP/1.1", f"Host: {host}:{self.running.port}", f"Content-Length: {len(form)}",
                 "Content-Type: application/x-www-form-urlencoded", *fields]
        return self.running.send("\r\n".join([*lines, "", form]).encode())

    def api(self, token: str) -> int:
        """The code of the refusal that a call under the token gets; 0 where the backend was called."""
        form = urllib.parse.urlencode(signed({"token": token}, APP_ID, PRIVATE_KEY, "ios", "2.0"))
        body = self.raw("/api", form).body
        return json.loads(body)["err"]["code"] if body.startswith(b"{") else 0


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doors")
    with Backend() as backend, Gateway(folder, "--upstream", backend.url, "--login-address", "100000/1s",
                                       clock=Clock(folder)) as running:
        yield Place(running, backend)


class TestLogin:
    @pytest.mark.parametrize("rung", ("plain-get", "md5", "hmac-md5-time"))
    def test_rungs_at_one_path(self, place, rung):
        name = place.add(rung)
        assert place.log_in(rung, name, PASSWORD + "x") == NOBODY
        answer = place.log_in(rung, name)
        assert answer["uid"] > 0 and set(answer) == {"uid", "tok", "loginTok", "expiresIn"}
        assert place.api(answer["tok"]) == 0
        method = "POST" if rung == "plain-get" else "GET"
        assert place.post("/user/login", method, phoneNo=name, pwd=sent(rung, PASSWORD, SALT, KEY)) == NOBODY

    def test_json(self, place):
        row = {"name": "13800138000", "user_id": 77, "rung": "plain-post", "value": "123456"}
        place.running.admin("account", "import", "shop", "-", stdin=json.dumps(row))
        answer = post_json(place, "/user/login", {"phoneNo": 13800138000, "pwd": 123456})
        assert json.loads(answer.body)["uid"] == 77, "a number is the text that was written"
        assert json.loads(post_json(place, "/user/login", {"phoneNo": "13800138000", "pwd": "123456", "app": None}).body)["uid"] == 77
        for body in (
            b'{"phoneNo":"a","pwd":{"x":1}}', b'{"phoneNo":"a","phoneNo":"b","pwd":"c"}', b'{"phoneNo":"a","pwd":true}',
            b'{"phoneNo":"a","pwd":null}', b"{" + b",".join(b'"n%d":1' % n for n in range(65)) + b"}",
            b'{"phoneNo":"a","pwd":"b","x":"' + b"y" * 8192 + b'"}', b"[]", b"",
        ):
            assert json.loads(post_json(place, "/user/login", body).body)["err"]["code"] == -1, body[:40]

    def test_the_names_of_old_mean_nothing_here(self, place):
        name = place.add("md5")
        answer = place.post("/user/login", username=name, password=sent("md5", PASSWORD, SALT, KEY))
        assert answer["err"]["code"] == -1

    def test_a_token_is_renewed_at_the_app_s_path(self, place):
        answer = place.log_in("md5", place.add("md5"))
        fresh = place.post("/user/token", loginTok=answer["loginTok"])
        assert set(fresh) == {"tok", "expiresIn"} and place.api(fresh["tok"]) == 0


def post_json(place, path: str, value: dict | bytes):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    head = (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{place.running.port}\r\nContent-Length: {len(body)}\r\n"
            "Content-Type: application/json; charset=utf-8\r\n\r\n")
    return place.running.send(head.encode() + body)


def test_no_other_spelling_reaches_the_backend(place):
    """LegacyDoorsTests has the spellings and methods."""
    for target, status in (("//user/login", 400), ("/user/loginx", 200)):
        before = len(place.backend.seen)
        answer = place.running.send(place.key.request("POST", target, b"phoneNo=u&pwd=guess"))
        assert (answer.status, len(place.backend.seen) - before) == (status, status == 200), target


class TestLogout:
    @pytest.fixture
    def session(self, place) -> dict:
        return place.log_in("md5", place.add("md5"))

    def is_over(self, place, session: dict) -> bool:
        renewed = place.post("/user/token", loginTok=session["loginTok"])
        ended = [place.api(session["tok"]), renewed.get("err", {}).get("code")]
        assert ended in ([0, None], [-100, -100]), "a session and its login token end together"
        return ended == [-100, -100]

    @pytest.mark.parametrize("by, method", [("tok", "GET"), ("loginTok", "POST")])
    def test_by_either_token(self, place, session, by, method):
        assert not self.is_over(place, session)
        for _ in range(2):
            assert place.post("/user/logout", method, **{by: session[by]}) == {"result": 1}
        assert self.is_over(place, session)

    def test_by_a_bearer_token_and_by_a_query_without_a_body(self, place, session):
        answer = place.raw("/user/logout", "", f"Authorization: Bearer {session['tok']}")
        assert (answer.status, answer.body) == (200, b'{"result":1}')
        assert self.is_over(place, session)
        other = place.log_in("md5", place.add("md5"))
        assert place.raw(f"/user/logout?tok={other['tok']}", "").body == b'{"result":1}'
        assert self.is_over(place, other)

    def test_a_signed_one(self, place, session):
        form = signed({"tok": session["tok"]}, APP_ID, PRIVATE_KEY, "ios", "2.0")
        assert json.loads(call(place.running.url + "/user/logout", form, place.ca)[1]) == {"result": 1}
        assert self.is_over(place, session)
        tampered = signed({"tok": session["tok"]}, APP_ID, PRIVATE_KEY, "ios", "2.0") | {"tok": "x"}
        _, body = call(place.running.url + "/user/logout", tampered, place.ca)
        assert json.loads(body)["err"]["code"] == -3

    def test_json(self, place, session):
        assert post_json(place, "/user/logout", {"tok": session["tok"]}).body == b'{"result":1}'
        assert self.is_over(place, session)

    def test_nobody_s_token_is_answered_alike_and_ends_nothing(self, place, session):
        made_up = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        # The session's id, which the backend is told, and the half of a login token that says which session it is.
        half, handle = session["tok"][:24] + made_up[-21:], session["loginTok"][:24] + made_up[-21:]
        for values in ({"tok": "b_" + made_up}, {"loginTok": "l_" + made_up}, {"tok": "x"}, {"tok": half},
                       {"loginTok": handle}, {"loginTok": session["tok"]}, {"tok": session["loginTok"]}):
            assert place.post("/user/logout", **values) == {"result": 1}
        assert not self.is_over(place, session)

    def test_no_token_or_two(self, place, session):
        assert place.post("/user/logout", tok="", loginTok="")["err"]["code"] == -1
        answer = place.raw("/user/logout", f"tok={session['tok']}", "Authorization: Bearer b_other")
        assert json.loads(answer.body)["err"]["code"] == -1
        assert not self.is_over(place, session)

    def test_another_app_s_token_ends_nothing(self, place, session):
        place.running.add_app("other", legacy_login="on", legacy_session="authority", legacy_host="localhost",
                              legacy_paths=PATHS)
        form = f"token={session['tok']}&loginToken={session['loginTok']}"
        assert place.raw("/user/logout", form, host="localhost").body == b'{"result":1}'
        assert not self.is_over(place, session)

    def test_the_token_before_ends_the_session_too(self, place, session):
        place.post("/user/token", loginTok=session["loginTok"])
        assert place.post("/user/logout", tok=session["tok"]) == {"result": 1}
        assert self.is_over(place, session)


class TestSignUp:
    def sign_up(self, place, rung: str, name: str, password: str = PASSWORD) -> dict:
        return place.post("/user/register", "GET" if rung == "plain-get" else "POST", phoneNo=name,
                          pwd=kept(rung, password, SALT, KEY))

    @pytest.mark.parametrize("rung", ("base64", "hmac-md5"))
    def test_and_then_a_login(self, place, rung):
        place.set(legacy_rung=rung)
        name = f"new-{rung}"
        answer = self.sign_up(place, rung, name)
        assert answer["uid"] > 0 and set(answer) == {"uid", "tok", "loginTok", "expiresIn"}
        assert place.api(answer["tok"]) == 0
        assert place.log_in(rung, name)["uid"] == answer["uid"]
        assert place.log_in(rung, name, PASSWORD + "x") == NOBODY
        listed = json.loads(place.running.admin("account", "list", "shop", "--json").out)["accounts"]
        assert next(account["credential"] for account in listed if account["account"] == name) == rung

    def test_nothing_is_kept_as_it_came(self, place):
        place.set(legacy_rung="plain-post")
        password = f"to-be-wrapped-{secrets.token_hex(16)}"
        assert self.sign_up(place, "plain-post", "wrapped", password)["uid"] > 0
        files = [path for path in place.running.data.rglob("*") if path.is_file()]
        assert files and not any(password.encode() in path.read_bytes() for path in files)
        assert password not in place.running.log_path.read_text()

    def test_without_the_policy_the_method_says_which_plain_rung(self, place):
        place.set(legacy_rung="")
        assert self.sign_up(place, "plain-get", "by-get")["uid"] > 0
        assert self.sign_up(place, "plain-post", "by-post")["uid"] > 0
        assert place.log_in("plain-get", "by-get")["uid"] > 0
        assert place.log_in("plain-post", "by-post")["uid"] > 0

    def test_a_name_that_is_taken_or_none(self, place):
        place.set(legacy_rung="md5")
        assert self.sign_up(place, "md5", "twice")["uid"] > 0
        for name in ("twice", "TWICE", " twice", "", "a" * 200):
            assert self.sign_up(place, "md5", name, OTHER) == NOBODY
        assert place.log_in("md5", "twice", OTHER) == NOBODY and place.log_in("md5", "twice")["uid"] > 0

    def test_a_value_that_the_rung_s_clients_do_not_send(self, place):
        place.set(legacy_rung="md5")
        assert place.post("/user/register", phoneNo="never", pwd="g" * 32)["err"]["code"] == -1

    def test_closed(self, place):
        place.set(registration="admin")
        try:
            assert place.post("/user/register", phoneNo="closed", pwd="x")["err"]["code"] == -9
        finally:
            place.set(registration="open")
        assert place.log_in("plain-post", "closed", "x") == NOBODY

    def test_no_rung_whose_value_lasts_a_minute(self, place):
        done = run("app", "policy", "shop", "--set", "legacy-rung=hmac-md5-time", "--data", place.running.data)
        assert done.returncode == 2 and "none that could be kept" in done.err

    def test_in_the_audit_log(self, place):
        place.set(legacy_rung="md5")
        self.sign_up(place, "md5", "audited")
        records = json.loads(place.running.admin("audit", "list", "--last", "5", "--json").out)
        assert "account.register" in json.dumps(records) and "audited" in json.dumps(records)


class TestPassword:
    def change(self, place, rung: str, old: str, new: str, **who: str) -> dict:
        return place.post("/user/password", "GET" if rung == "plain-get" else "POST",
                          pwd=sent(rung, old, SALT, KEY), newPwd=kept(rung, new, SALT, KEY), **who)

    def test_by_the_user_name(self, place):
        rung, name = "plain-get", place.add("plain-get")
        session = place.log_in(rung, name)
        assert self.change(place, rung, PASSWORD + "x", OTHER, phoneNo=name) == NOBODY
        assert place.api(session["tok"]) == 0
        assert self.change(place, rung, PASSWORD, OTHER, phoneNo=name) == {"uid": session["uid"]}
        assert place.api(session["tok"]) == -100, "all sessions end"
        assert place.log_in(rung, name) == NOBODY
        assert place.log_in(rung, name, OTHER)["uid"] == session["uid"]

    def test_by_a_session_which_stays(self, place):
        rung, name = "md5-salt", place.add("md5-salt")
        own, other = place.log_in(rung, name), place.log_in(rung, name)
        assert self.change(place, rung, PASSWORD + "x", OTHER, tok=own["tok"]) == NOBODY
        assert self.change(place, rung, PASSWORD, OTHER, tok=own["tok"], phoneNo=name) == {"uid": own["uid"]}
        assert (place.api(own["tok"]), place.api(other["tok"])) == (0, -100)
        assert place.log_in(rung, name, OTHER)["uid"] == own["uid"]

    def test_a_session_is_good_for_its_own_account_alone(self, place):
        victim, thief = place.add("md5"), place.add("md5")
        session = place.log_in("md5", thief)
        assert self.change(place, "md5", PASSWORD, OTHER, tok=session["tok"], phoneNo=victim) == NOBODY
        assert place.log_in("md5", victim)["uid"] > 0

    def test_a_token_that_is_over(self, place):
        name = place.add("md5")
        session = place.log_in("md5", name)
        place.post("/user/logout", tok=session["tok"])
        assert self.change(place, "md5", PASSWORD, OTHER, tok=session["tok"])["err"]["code"] == -100
        assert self.change(place, "md5", PASSWORD, OTHER, tok="b_x", phoneNo=name)["err"]["code"] == -100
        assert place.log_in("md5", name)["uid"] > 0

    def test_no_value_that_could_be_kept(self, place):
        name = place.add("hmac-md5-time")
        answer = place.post("/user/password", phoneNo=name, pwd=sent("hmac-md5-time", PASSWORD, SALT, KEY),
                            newPwd=kept("hmac-md5-time", OTHER, SALT, KEY))
        assert answer["err"]["code"] == -9
        name = place.add("md5")
        answer = place.post("/user/password", phoneNo=name, pwd=sent("md5", PASSWORD, SALT, KEY), newPwd="plain")
        assert answer["err"]["code"] == -1 and place.log_in("md5", name)["uid"] > 0


def test_tokens_run_out_with_minus_100_unless_they_are_renewed(place):
    place.set(token_lifetime="1s")
    try:
        session = place.log_in("md5", place.add("md5"))
        place.running.clock.advance(2.1)
        assert place.api(session["tok"]) == -100
        assert place.post("/user/password", tok=session["tok"], pwd="x", newPwd="y")["err"]["code"] == -100
        place.set(legacy_renewal="on")
        assert place.api(session["tok"]) == -101
        assert place.post("/user/password", tok=session["tok"], pwd="x", newPwd="y")["err"]["code"] == -101
        assert place.post("/user/logout", tok=session["tok"]) == {"result": 1}, "it still signs out"
        assert place.post("/user/token", loginTok=session["loginTok"])["err"]["code"] == -100
    finally:
        place.set(token_lifetime="", legacy_renewal="")


class TestLimits:
    def test_sign_ups_by_address(self, tmp_path):
        with Backend() as backend, Gateway(tmp_path, "--upstream", backend.url, "--login-address",
                                           "3/3600s") as running:
            place = Place(running, backend)
            answers = [place.status("/user/register", phoneNo=f"a{n}", pwd="a secret of its own") for n in range(5)]
            assert [status for status, _ in answers] == [200, 200, 200, 429, 429]
            assert answers[-1][1]["err"]["code"] == -8
            assert all(answer["uid"] > 0 for status, answer in answers if status == 200)

    def test_wrong_old_passwords_are_guesses(self, tmp_path):
        with Backend() as backend, Gateway(tmp_path, "--upstream", backend.url, "--login-account",
                                           "3/3600s") as running:
            place = Place(running, backend)
            name = place.add("md5")
            session = place.log_in("md5", name)
            wrong = {"phoneNo": name, "pwd": "0" * 32, "newPwd": "1" * 32}
            assert [place.status("/user/password", **wrong)[0] for _ in range(4)] == [200, 200, 200, 429]
            assert place.status("/user/login", phoneNo=name, pwd="0" * 32)[0] == 429, "they count to the account"
            changed = place.post("/user/password", tok=session["tok"], pwd=sent("md5", PASSWORD, SALT, KEY), newPwd="1" * 32)
            assert changed["uid"] > 0, "strangers' guesses do not keep a session from its password"


def test_the_paths_are_the_backend_s_where_tokens_are(tmp_path):
    with Backend() as backend, Gateway(tmp_path, "--upstream", backend.url) as running:
        place = Place(running, backend)
        place.set(legacy_session="upstream")
        for target in ("/user/logout", "/user/token", "/USER/logout"):
            assert running.send(place.key.request("POST", target, b"tok=x")).status == 200, target
        assert place.post("/user/register", phoneNo="anna", pwd="x" * 8)["uid"] > 0
        assert place.post("/user/password", phoneNo="anna", pwd="x" * 8, newPwd="y" * 8, tok="theirs")["uid"] > 0
        assert place.post("/user/login", phoneNo="anna", pwd="y" * 8).keys() == {"uid"}
        place.set(legacy_login="off")
        before = len(backend.seen)
        for target in ("/user/login", "//user/login", "/user/register"):
            assert running.send(place.key.request("POST", target, b"phoneNo=u")).status == 200, target
        assert len(backend.seen) == before + 3


class TestNewPasswords:
    """What comes in clear is checked by the app's rule; what comes hashed cannot be."""

    def test_a_short_or_breached_one_is_refused(self, tmp_path):
        listed = "breached password"
        digests = sorted(hashlib.sha1(text.encode()).hexdigest().upper() for text in (listed, "another", "a third"))
        known = tmp_path / "own" / "data" / "policy-files" / "breached.txt"
        text = "".join(f"{digest}:{count}\n" for count, digest in enumerate(digests))
        with Backend() as backend, Gateway(tmp_path / "own", "--upstream", backend.url) as running:
            place = Place(running, backend)
            known.parent.mkdir(mode=0o700)
            known.write_text(text)
            place.set(breached_passwords=str(known))
            for bad in ("seven77", listed):
                status, answer = place.status("/user/register", phoneNo="clara", pwd=bad)
                assert answer["err"]["code"] == -1, (status, answer)
            made = place.post("/user/register", phoneNo="clara", pwd="eight888")
            assert made.get("uid", 0) > 0, made
            for bad in ("seven77", listed):
                status, answer = place.status("/user/password", phoneNo="clara", pwd="eight888", newPwd=bad)
                assert answer["err"]["code"] == -1, (status, answer)
            place.set(password_min="7")
            assert place.post("/user/password", phoneNo="clara", pwd="eight888", newPwd="seven77")["uid"] > 0
            known.unlink()
            status, _ = place.status("/user/register", phoneNo="dora", pwd="eight888")
            assert status == 503, "a list that is gone lets nothing pass"
