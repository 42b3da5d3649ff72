"""Old clients sign in on all seven rungs, get tokens, renew them, and lose them to the next login; accounts are imported."""

import base64
import json
import re
import urllib.parse

import pytest

from clock import Clock
from gateway import ROOT, Gateway, run
from l1_client import call, error, signed
from l5_client import RUNGS, OldClient, kept, minute, sent
from person import Person

SALT, KEY, PASSWORD = "gdyb21LQTcIANtvYMT7QVQ==", "qianqian", "p@ss%word!"
APP_ID, PRIVATE_KEY = "Zk3vQp81LmTn0aWd", "hUe7cXs2Rb9yKfJ4"
# A `%` that begins no escape is sent as it is by clients that escape nothing. Base64 with `+` in it, which
# arrives as a space if the client does not escape it.
PLUS = "\u00fb\u00ef\u00be>>?"


def rows() -> list[dict]:
    made = [{"name": f"user-{rung}", "user_id": 100 + index, "rung": rung, "value": kept(rung, PASSWORD, SALT, KEY)}
            for index, rung in enumerate(RUNGS)]
    made.append({"name": "plus", "user_id": 200, "rung": "base64", "value": kept("base64", PLUS, SALT, KEY)})
    made += [{"name": f"turn{n}", "user_id": 300 + n, "rung": "hmac-md5-time", "value": kept("hmac-md5-time", PASSWORD, SALT, KEY)}
             for n in range(6)]
    made += [{"name": f"held{n}", "user_id": 400 + n, "rung": "md5", "value": kept("md5", PASSWORD, SALT, KEY)} for n in range(8)]
    return made


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    # From one address come all of these tests' guesses; accounts are limited as ever.
    folder = tmp_path_factory.mktemp("ladder")
    with Gateway(folder, "--login-address", "100000/1s", clock=Clock(folder)) as running:
        running.add_app("old", schemes="form-md5", legacy_login="on", legacy_session="authority",
                        legacy_renewal="on", legacy_salt=SALT, legacy_key=KEY, slots="single")
        running.admin("release", "add", "old", "--platform", "ios", "--version", "2.0", "--scheme", "form-md5",
                      "--key-id", APP_ID, "--secret", PRIVATE_KEY)
        lines = "\n".join(json.dumps(row) for row in rows())
        report = json.loads(running.admin("account", "import", "old", "-", "--json", stdin=lines).out)
        assert (report["taken"], report["refused"]) == (len(rows()), 0)
        running.ca = str(running.data / "tls/certificate.pem")
        running.client = OldClient(running.url, running.ca)
        yield running


def api(old, **business: str) -> dict:
    """A signed call of the backend: what it was sent, or `err`."""
    status, body = call(old.url + "/api", signed(business, APP_ID, PRIVATE_KEY, "ios", "2.0"), old.ca)
    assert status == 200
    return json.loads(body)


def early_in_a_minute(gateway: Gateway) -> float:
    """The server's time, so early in a minute that what is sent now is judged in the same one."""
    if gateway.time() % 60 > 30:
        gateway.clock.advance(60 - gateway.time() % 60)
    return gateway.time()


@pytest.mark.parametrize("rung", RUNGS)
def test_each_rung(old, rung):
    now = early_in_a_minute(old)
    value = sent(rung, PASSWORD, SALT, KEY, now)
    wrong = sent(rung, PASSWORD + "x", SALT, KEY, now)
    assert old.client.log_in(rung, f"user-{rung}", wrong) == {"userId": 0}
    answer = old.client.log_in(rung, f"user-{rung}", value)
    assert answer["userId"] == 100 + RUNGS.index(rung)
    assert re.fullmatch(r"b_[A-Za-z0-9_-]{43}", answer["token"]) and re.fullmatch(r"l_[A-Za-z0-9_-]{43}", answer["loginToken"])
    assert answer["expiresIn"] == 7200
    other = RUNGS[(RUNGS.index(rung) + 2) % len(RUNGS)]
    assert old.client.log_in(other, f"user-{rung}", sent(other, PASSWORD, SALT, KEY, now)) == {"userId": 0}, "another rung's value"


def test_a_plus_that_arrives_as_a_space(old):
    value = base64.b64encode(PLUS.encode()).decode()
    assert "+" in value
    assert old.client.log_in("base64", "plus", value)["userId"] == 200


def test_the_figures_of_the_vectors(tmp_path):
    """Known answers of others, over HTTP: what they say is sent opens the account, on the rungs that have no minute in them."""
    cases = json.loads((ROOT / "Vectors/login-ladder/cases.json").read_text())["cases"][:3]
    accounts = [(100 * index + n + 1, rung, case["sent"][rung])
                for index, case in enumerate(cases) for n, rung in enumerate(RUNGS[:-1])]
    with Gateway(tmp_path) as running:
        running.add_app("old", legacy_login="on")
        running.admin("account", "import", "old", "-", stdin="\n".join(
            json.dumps({"name": f"u{user}", "user_id": user, "rung": rung, "value": value}) for user, rung, value in accounts))
        client = OldClient(running.url, str(running.data / "tls/certificate.pem"))
        for user, rung, value in accounts:
            assert client.log_in(rung, f"u{user}", urllib.parse.quote(value)) == {"userId": user}, (rung, value)


class TestTheMinute:
    def test_this_one_and_the_last_once_each(self, old):
        """The minute turns between the client and the server: the client's clock is put back, the server's goes on."""
        now = early_in_a_minute(old)
        this, last, older, next_ = (sent("hmac-md5-time", PASSWORD, SALT, KEY, now + ahead) for ahead in (0, -60, -120, 60))
        assert minute(now) != minute(now - 60)
        log_in = lambda value: old.client.log_in("hmac-md5-time", "turn0", value)["userId"]  # noqa: E731
        assert log_in(older) == 0
        assert log_in(next_) == 0
        assert log_in(last) == 300
        assert log_in(last) == 0, "once"
        assert log_in(this) == 300
        assert log_in(this) == 0, "once"

    def test_one_account_s_use_is_not_another_s(self, old):
        value = sent("hmac-md5-time", PASSWORD, SALT, KEY, early_in_a_minute(old))
        assert [old.client.log_in("hmac-md5-time", f"turn{n}", value)["userId"] for n in (1, 2)] == [301, 302]

    def test_a_use_is_remembered_over_kill_9(self, tmp_path):
        with Gateway(tmp_path, clock=Clock(tmp_path)) as running:
            running.add_app("old", legacy_login="on", legacy_key=KEY)
            running.admin("account", "import", "old", "-", stdin=json.dumps(
                {"name": "u", "user_id": 5, "rung": "hmac-md5-time", "value": kept("hmac-md5-time", PASSWORD, SALT, KEY)}))
            client = OldClient(running.url, str(running.data / "tls/certificate.pem"))
            value = sent("hmac-md5-time", PASSWORD, SALT, KEY, early_in_a_minute(running))
            assert client.log_in("hmac-md5-time", "u", value) == {"userId": 5}
            assert running.stop(9) == -9
            running.start()
            assert client.log_in("hmac-md5-time", "u", value) == {"userId": 0}


class TestTokens:
    def log_in(self, old, name: str) -> dict:
        return old.client.log_in("md5", name, sent("md5", PASSWORD, SALT, KEY))

    def test_the_second_login_ends_the_first(self, old):
        first = self.log_in(old, "held0")
        assert "err" not in api(old, token=first["token"], userId="400")
        second = self.log_in(old, "held0")
        err = api(old, token=first["token"], userId="400")["err"]
        assert err["code"] == -100 and err["eventId"]
        assert old.client.new_token(first["loginToken"])["err"]["code"] == -100
        assert "err" not in api(old, token=second["token"], userId="400")

    def test_userId_and_token_belong_together(self, old):
        one, two = self.log_in(old, "held1"), self.log_in(old, "held2")
        assert "err" not in api(old, token=one["token"], userId="401")
        for business in ({"token": one["token"], "userId": "402"}, {"userId": "401"}, {"token": "b_" + "A" * 43},
                         {"token": two["loginToken"]}):
            assert api(old, **business)["err"]["code"] == -100, business
        assert "err" not in api(old), "a release may still call what needs no session"

    def test_a_token_that_ran_out(self, old):
        """The lifetime is set to a second; the token that was given before keeps its two hours."""
        old.admin("app", "policy", "old", "--set", "token-lifetime=1s")
        try:
            answer = self.log_in(old, "held3")
            assert answer["expiresIn"] == 1
            old.clock.advance(2.1)
            assert api(old, token=answer["token"])["err"]["code"] == -101
            old.admin("app", "policy", "old", "--set", "legacy-renewal=off")
            assert api(old, token=answer["token"])["err"]["code"] == -100
            old.admin("app", "policy", "old", "--set", "legacy-renewal=on", "--set", "token-lifetime=2h")
            fresh = old.client.new_token(answer["loginToken"])
            assert set(fresh) == {"token", "expiresIn"} and fresh["expiresIn"] == 7200
            assert "err" not in api(old, token=fresh["token"], userId="403")
            assert api(old, token=answer["token"])["err"]["code"] == -101, "the one before"
            assert set(old.client.new_token(answer["loginToken"])) == {"token", "expiresIn"}, "it stays"
        finally:
            old.admin("app", "policy", "old", "--set", "token-lifetime=", "--set", "legacy-renewal=on")

    def test_what_an_administrator_ends_is_minus_100(self, old):
        answer = self.log_in(old, "held4")
        old.admin("account", "lock", "old", "held4")
        assert api(old, token=answer["token"])["err"]["code"] == -100
        assert old.client.new_token(answer["loginToken"])["err"]["code"] == -100
        assert self.log_in(old, "held4") == {"userId": 0}
        old.admin("account", "unlock", "old", "held4")
        assert self.log_in(old, "held4")["userId"] == 404

    def test_a_signed_login(self, old):
        """The login itself is signed with form-md5, with whatever token the client still has."""
        form = signed({"username": "held5", "password": sent("md5", PASSWORD, SALT, KEY), "token": "gone", "userId": "1"},
                      APP_ID, PRIVATE_KEY, "ios", "2.0")
        _, body = call(old.url + "/login/login.php", form, old.ca)
        answer = json.loads(body)
        assert answer["userId"] == 405
        assert error(call(old.url + "/login/login.php", form, old.ca)[1])["code"] == -5, "a replay"
        tampered = form | {"username": "held6"}
        assert error(call(old.url + "/login/login.php", tampered, old.ca)[1])["code"] == -3

    def test_the_backend_is_told_who_and_no_token_field(self, old):
        answer = self.log_in(old, "held6")
        form = "&".join(f"{k}={v}" for k, v in signed({}, APP_ID, PRIVATE_KEY, "ios", "2.0").items())
        raw = (f"POST /api HTTP/1.1\r\nHost: 127.0.0.1:{old.port}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
               f"Authorization: Bearer {answer['token']}\r\nContent-Length: {len(form)}\r\n\r\n{form}")
        seen = json.loads(old.send(raw.encode()).body)["headers"]
        assert seen["countersign-account"] == "id:406"
        assert "authorization" not in seen

    def test_unknown_names_get_the_same_bytes(self, old):
        value = sent("md5", "wrong", SALT, KEY)
        bodies = {old.client.call("/login/login.php", f"username={name}&password={value}")[2]
                  for name in ("held7", "nobody", "user-plain-get", "user-hmac-md5-time", "a%01b", "x" * 600)}
        assert bodies == {b'{"userId":0}'}
        minute_bodies = {old.client.call("/login/loginhmac.php", f"username={name}&password={value}")[2]
                         for name in ("turn5", "nobody2", "user-md5")}
        assert minute_bodies == {b'{"userId":0}'}

    def test_too_many_guesses(self, old):
        answers = [old.client.call("/login/login.php", f"username=guessed&password={n}") for n in range(11)]
        assert [status for status, _, _ in answers[:10]] == [200] * 10
        status, answer, _ = answers[10]
        assert status == 429 and answer["err"]["code"] == -8
        form = signed({"username": "guessed", "password": "x"}, APP_ID, PRIVATE_KEY, "ios", "2.0")
        assert error(call(old.url + "/login/login.php", form, old.ca)[1])["code"] == -8


def test_nothing_of_it_is_in_the_log_or_the_database(old):
    answer = old.client.log_in("plain-get", "user-plain-get", PASSWORD)
    assert answer["userId"] == 100
    secrets = [PASSWORD.encode(), kept("base64", PASSWORD, SALT, KEY).encode(),
               kept("md5", PASSWORD, SALT, KEY).encode(), answer["token"].encode(), answer["loginToken"].encode(),
               SALT.encode(), KEY.encode()]
    files = [old.log_path, *(path for path in old.data.rglob("*") if path.is_file() and not path.name.endswith("-shm"))]
    for path in files:
        data = path.read_bytes()
        assert not [secret for secret in secrets if secret in data], path


def test_the_paths_are_the_backends_where_no_app_has_them(shared):
    for path in ("/login/login.php", "/login/loginhmac.php", "/login/token.php"):
        status, answer, _ = OldClient(shared.url, str(shared.data / "tls/certificate.pem")).call(path, "username=a&password=b")
        assert status == 401 and answer["code"] == "unsigned", path


def test_whose_an_unsigned_login_is(tmp_path):
    """By the host that a policy names; if no policy names it, the request belongs to no app."""
    with Gateway(tmp_path) as running:
        for app, host in (("one", "localhost"), ("two", "other.example")):
            running.add_app(app, legacy_login="on", legacy_host=host)
            running.admin("account", "import", app, "-", stdin=json.dumps(
                {"name": "u", "user_id": 1 if app == "one" else 2, "rung": "plain-post", "value": "pw"}))
        ca = str(running.data / "tls/certificate.pem")
        assert OldClient(running.url.replace("127.0.0.1", "localhost"), ca).log_in("plain-post", "u", "pw") == {"userId": 1}
        status, answer, _ = OldClient(running.url, ca).call("/login/login.php", "username=u&password=pw")
        assert status == 401 and answer["code"] == "unsigned"
        raw = b"POST /login/login.php HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n"
        assert b"userId" not in running.send(raw).body


class TestImport:
    TABLE = ("name,user_id,rung,value\n" "ann,1,md5,5f4dcc3b5aa765d61d8327deb882cf99\n" "bob,2,md5,nonsense\n"
             "cid,1,md5,5f4dcc3b5aa765d61d8327deb882cf99\n" "dan,3,no-rung,x\n" "ann,9,md5,5f4dcc3b5aa765d61d8327deb882cf99\n"
             "eve,4,plain-post,secret words\n")

    def test_lines_are_refused_by_number_and_the_rest_is_taken(self, tmp_path):
        gateway = Gateway(tmp_path)
        gateway.add_app("old")
        gateway.add_app("other")
        data = ("--data", gateway.data)
        dry = run("account", "import", "old", "-", "--dry-run", "--json", *data, stdin=self.TABLE)
        assert dry.returncode == 1 and json.loads(dry.out)["taken"] == 4
        assert json.loads(gateway.admin("account", "list", "old", "--json").out)["accounts"] == []

        done = run("account", "import", "old", "-", "--json", *data, stdin=self.TABLE)
        report = json.loads(done.out)
        assert done.returncode == 1
        assert (report["taken"], report["present"], report["refused"]) == (2, 0, 4)
        assert {(p["line"], p["column"]) for p in report["problems"]} == {(3, "value"), (4, "user_id"), (5, "rung"), (6, "name")}
        assert "line 3, value: " in done.err and "nonsense" not in done.err and "secret" not in done.err + done.out
        names = [account["account"] for account in json.loads(gateway.admin("account", "list", "old", "--json").out)["accounts"]]
        assert names == ["ann", "eve"]

        again = json.loads(run("account", "import", "old", "-", "--json", *data, stdin=self.TABLE).out)
        assert (again["taken"], again["present"], again["refused"]) == (0, 2, 4)
        gateway.admin("audit", "verify")
        records = [record for record in json.loads(gateway.admin("audit", "list", "--json").out)["records"]
                   if record["action"] == "account.import"]
        assert [record["details"] for record in records] == [{"lines": "2-7", "rows": 4}]

    @pytest.mark.parametrize("words, said", [
        (("import",), "FILE is missing"), (("import", "old", "/nowhere.csv"), "/nowhere.csv"),
        (("import", "none", "-"), "app none"), (("import", "-"), "2 apps"),
        (("import", "old", "-", "--format", "xml"), "--format `xml`"),
    ])
    def test_what_is_said_of_a_wrong_call(self, tmp_path, words, said):
        gateway = Gateway(tmp_path)
        gateway.add_app("old")
        gateway.add_app("other")
        done = run("account", *words, "--data", gateway.data, stdin="name\n")
        assert done.returncode in (1, 2) and (said in done.err or said == "2 apps" and "--app" in done.err), done.err

    def test_a_header_that_is_none(self, tmp_path):
        gateway = Gateway(tmp_path)
        gateway.add_app("old")
        done = run("account", "import", "-", "--data", gateway.data, stdin="user,hash\n1,2\n")
        assert done.returncode == 1 and "line 1" in done.err


def test_a_secret_setting_from_standard_input(tmp_path):
    """What must not stand in a command line; it is in force at once, as the running server's next login shows."""
    with Gateway(tmp_path, clock=Clock(tmp_path)) as running:
        running.add_app("old", legacy_login="on")
        running.admin("account", "import", "old", "-", stdin=json.dumps(
            {"name": "u", "user_id": 5, "rung": "hmac-md5-time", "value": kept("hmac-md5-time", PASSWORD, SALT, KEY)}))
        client = OldClient(running.url, str(running.data / "tls/certificate.pem"))
        value = sent("hmac-md5-time", PASSWORD, SALT, KEY, early_in_a_minute(running))
        assert client.log_in("hmac-md5-time", "u", value) == {"userId": 0}, "no key yet"
        shown = running.admin("app", "policy", "old", "--set-secret", "legacy-key", stdin=KEY + "\n")
        assert "legacy-key=(sealed)" in shown.out and KEY not in shown.out
        assert client.log_in("hmac-md5-time", "u", value) == {"userId": 5}


def test_an_account_leaves_the_ladder_by_registering(tmp_path):
    """With a reset code its owner registers from the new app: from then on no rung opens it, and the password never travels."""
    with Gateway(tmp_path) as running:
        running.add_app("old", legacy_login="on")
        running.admin("account", "import", "old", "-", stdin=json.dumps(
            {"name": "u", "user_id": 5, "rung": "md5", "value": kept("md5", PASSWORD, SALT, KEY)}))
        ca = running.data / "tls/certificate.pem"
        client = OldClient(running.url, str(ca))
        assert client.log_in("md5", "u", sent("md5", PASSWORD, SALT, KEY)) == {"userId": 5}
        key = running.add_release("old")
        profile = tmp_path / "profile"
        assert run("profile", "add", profile, "--url", running.url, "--key-id", key.key_id, "--secret-stdin", "--ca", ca,
                   stdin=key.secret).returncode == 0
        who = ("--profile", profile, "--account", "u", "--password-stdin")
        assert run("login", *who, stdin=PASSWORD).returncode == 1, "OPAQUE does not open an account on the ladder"
        code = json.loads(running.admin("account", "reset", "old", "u", "--json").out)["reset_code"]
        done = run("signup", *who, "--reset-code-stdin", stdin=f"{code}\n{PASSWORD}\n")
        assert done.returncode == 0, done.err
        assert client.log_in("md5", "u", sent("md5", PASSWORD, SALT, KEY)) == {"userId": 0}
        done = run("login", *who, stdin=PASSWORD)
        assert done.returncode == 0, done.err
        shown = json.loads(run("request", "--profile", profile, "/api").out)
        assert shown["headers"]["countersign-account"] == "id:5", "the backend still knows the user by its own number"


class TestUpgrade:
    """Policy `legacy-upgrade`: a login that brings the password itself moves its account to OPAQUE."""

    NAMES = {"plain-get": 1, "plain-post": 2, "base64": 3, "md5": 4, "hmac-md5-time": 5}

    @pytest.fixture
    def moving(self, tmp_path):
        with Gateway(tmp_path / "gateway", clock=Clock(tmp_path)) as running:
            running.add_app("old", legacy_login="on", legacy_session="authority", legacy_upgrade="on", legacy_key=KEY,
                            slots="unlimited", schemes="message-signatures,form-md5")
            running.admin("account", "import", "old", "-", stdin="\n".join(json.dumps(
                {"name": rung, "user_id": user, "rung": rung, "value": kept(rung, PASSWORD, SALT, KEY)})
                for rung, user in self.NAMES.items()))
            running.admin("release", "add", "old", "--platform", "ios", "--version", "2.0", "--scheme", "form-md5",
                          "--key-id", APP_ID, "--secret", PRIVATE_KEY)
            running.ca = str(running.data / "tls/certificate.pem")
            running.client = OldClient(running.url, running.ca)
            yield running

    def log_in(self, moving, rung: str, password: str = PASSWORD) -> dict:
        return moving.client.log_in(rung, rung, urllib.parse.quote(sent(rung, password, SALT, KEY, early_in_a_minute(moving))))

    @pytest.mark.parametrize("rung", ["plain-get", "plain-post", "base64"])
    def test_the_password_s_account_moves_and_the_rung_opens_it_no_more(self, moving, tmp_path, rung):
        alice = Person(moving, tmp_path / "alice", rung, app="old")
        assert self.log_in(moving, rung, PASSWORD + "x") == {"userId": 0}
        assert alice.run("login", "--account", rung, "--password-stdin", stdin=PASSWORD).returncode == 1, "it is on the ladder"
        answer = self.log_in(moving, rung)
        assert answer["userId"] == self.NAMES[rung] and answer["token"]
        alice.logs_in(password=PASSWORD)
        assert alice.calls("/hello")["headers"]["countersign-account"] == f"id:{self.NAMES[rung]}", "the backend's number stays"
        assert self.log_in(moving, rung) == {"userId": 0}
        assert "err" not in api(moving, token=answer["token"], userId=str(self.NAMES[rung])), "what it was given goes on"
        assert set(moving.client.new_token(answer["loginToken"])) == {"token", "expiresIn"}
        records = [record for record in json.loads(moving.admin("audit", "list", "--json").out)["records"]
                   if record["action"] == "account.upgrade"]
        assert [(record["account"], record["actor"]["kind"]) for record in records] == [(rung, "account")]

    @pytest.mark.parametrize("rung", ["md5", "hmac-md5-time"])
    def test_a_digest_moves_nothing(self, moving, rung):
        assert self.log_in(moving, rung)["userId"] == self.NAMES[rung]
        if rung != "hmac-md5-time":
            assert self.log_in(moving, rung)["userId"] == self.NAMES[rung]
        assert "account.upgrade" not in moving.admin("audit", "list", "--json").out

    @pytest.mark.parametrize("rung", ["md5", "hmac-md5-time"])
    def test_a_new_client_that_sends_the_password_once_moves_a_digest_s_account(self, moving, tmp_path, rung):
        alice = Person(moving, tmp_path / "alice", rung, app="old")
        sends = ("login", "--account", rung, "--password-stdin", "--password-login")
        assert alice.run(*sends, stdin=PASSWORD).returncode == 1, "policy password-login is off"
        moving.admin("app", "policy", "old", "--set", "password-login=on")
        assert alice.run(*sends, stdin=PASSWORD + "x").returncode == 1
        done = alice.run(*sends, stdin=PASSWORD)
        assert done.returncode == 0, done.err
        assert alice.calls("/hello")["headers"]["countersign-account"] == f"id:{self.NAMES[rung]}"
        alice.logs_in(password=PASSWORD)
        assert self.log_in(moving, rung) == {"userId": 0}
        assert moving.admin("audit", "list", "--json").out.count("account.upgrade") == 1

    def test_off_unless_the_policy_says_so(self, moving, tmp_path):
        moving.admin("app", "policy", "old", "--set", "legacy-upgrade=")
        for _ in range(2):
            assert self.log_in(moving, "plain-post")["userId"] == 2
        moving.admin("app", "policy", "old", "--set", "legacy-upgrade=on")
        assert self.log_in(moving, "plain-post")["userId"] == 2
        assert self.log_in(moving, "plain-post") == {"userId": 0}

    def test_a_password_that_opaque_does_not_take_stays_on_its_rung(self, moving):
        """Bytes that are no text: no other client could type them."""
        moving.admin("account", "import", "old", "-", stdin=json.dumps(
            {"name": "gbk", "user_id": 9, "rung": "base64", "value": base64.b64encode(b"\xc4\xe3\xba\xc3").decode()}))
        for _ in range(2):
            value = urllib.parse.quote(base64.b64encode(b"\xc4\xe3\xba\xc3").decode())
            assert moving.client.log_in("base64", "gbk", value)["userId"] == 9
