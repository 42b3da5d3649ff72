"""Each door at which a password or login token is tried, with each outcome: the log, the metrics, the meter and the alert
for guessing name the same outcome. Old clients read a wrong password from a response of status 200."""

import json
import re
import urllib.parse
from typing import Callable, NamedTuple

import pytest

import bearer
from clock import Clock
from l1_client import signed
from person import Person
from products import ROOT
from test_metrics import Administered
from waiting import until
from wire import Answer

APP_ID, PRIVATE_KEY = "Zk3vQp81LmTn0aWd", "hUe7cXs2Rb9yKfJ4"
PATHS = "login:/user/login,logout:/user/logout,token:/user/token,signup:/user/register,password:/user/password"
RIGHT, WRONG = "correct horse battery", "a guess of mine"
# What counts as a guess for the alert.
GUESS = re.search(r'countersign_refusals_total\{code=~"([^"]+)"\}',
                  (ROOT / "Examples/observability/alerts.yml").read_text().split("- alert: CountersignPasswordGuesses")[1]).group(1)


class Place:
    def __init__(self, gateway: Administered):
        self.gateway = gateway
        common = {"legacy_login": "on", "legacy_session": "authority", "legacy_paths": PATHS, "slots": "unlimited",
                  "registration": "open"}
        gateway.add_app("shop", schemes="form-md5", legacy_host="shop.example", **common)
        gateway.add_app("web", schemes="token", legacy_host="web.example", token_in="bearer",
                        release_in="header:x-app-version", **common)
        gateway.add_app("demo", password_login="on", slots="unlimited", registration="open")
        gateway.key = gateway.add_release()
        gateway.admin("release", "add", "shop", "--platform", "ios", "--version", "2.0", "--scheme", "form-md5", "--key-id",
                      APP_ID, "--secret", PRIVATE_KEY)
        self.web = json.loads(gateway.admin("release", "add", "web", "--platform", "ios", "--version", "3.1", "--scheme",
                                            "token", "--json").out)["key_id"]
        self.others = None
        for app in ("shop", "web"):
            rows = [{"name": name, "user_id": 100 + number, "rung": "plain-post", "value": RIGHT}
                    for number, name in enumerate(DOORS)]
            gateway.admin("account", "import", app, "-", stdin="\n".join(map(json.dumps, rows)))
        for name in DOORS:
            gateway.admin("account", "add", "demo", name, "--password-stdin", stdin=f"{RIGHT}\n")

    def post(self, host: str, path: str, *fields: str, **values: str) -> Answer:
        body = urllib.parse.urlencode(values)
        lines = [f"POST {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}",
                 "Content-Type: application/x-www-form-urlencoded", *fields]
        return self.gateway.send("\r\n".join([*lines, "", body]).encode())

    def state(self) -> dict[tuple, float]:
        """The counters of the metrics that concern outcomes."""
        return {(name, labels): value for (name, labels), value in self.gateway.metrics().items()
                if name in ("countersign_requests_total", "countersign_logins_total", "countersign_refreshes_total",
                            "countersign_refusals_total", "countersign_unavailable_responses_total") and value}

    def lines(self) -> list[dict]:
        """The log's lines of requests."""
        return [event for event in self.gateway.events() if "code" in event]

    def counted(self) -> dict[tuple[str, str, str], int]:
        """The stored meter by app, release and outcome."""
        found: dict[tuple[str, str, str], int] = {}
        report = json.loads(self.gateway.admin("meter", "--json").out)
        for line in report["releases"]:
            party = line["app"], line["key_id"]
            found[*party, "accepted"] = line["accepted"]
            found |= {(*party, code): count for code, count in line["refused_by_code"].items()}
        for row in report["unsigned"]:
            found[row["app"], "", "accepted"] = row["accepted"]
            found |= {(row["app"], "", code): count for code, count in row["refused_by_code"].items()}
        found |= {("", "", code): count for code, count in report["unknown"].items()}
        return {key: count for key, count in found.items() if count}


class Door(NamedTuple):
    """Calls with a password, and the app and release that the call counts to."""
    call: Callable[[Place, str, str], Answer]
    app: str
    release: Callable[[Place], str]
    counts_logins: bool = True
    # Of the right password of a locked account.
    locked: str = "wrong-credentials"


def legacy(host: str, *fields: str, path: str = "/user/login", **more: str) -> Callable[[Place, str, str], Answer]:
    return lambda place, name, password: place.post(host, path, *fields, username=name, password=password, **more)


def legacy_signed(place: Place, name: str, password: str) -> Answer:
    return place.post("shop.example", "/user/login",
                      **signed({"username": name, "password": password}, APP_ID, PRIVATE_KEY, "ios", "2.0"))


def with_password(place: Place, name: str, password: str) -> Answer:
    body = json.dumps({"account": name, "password": password, "device": bearer.DEVICE}).encode()
    return place.gateway.send(place.gateway.key.request("POST", f"{bearer.PREFIX}/login/password", body,
                                                        fields=[("content-type", "application/json")]))


DOORS = {
    "json": Door(with_password, "demo", lambda place: place.gateway.key.key_id, locked="forbidden"),
    "unsigned": Door(legacy("shop.example"), "shop", lambda _: ""),
    "signed": Door(legacy_signed, "shop", lambda _: APP_ID),
    "token-app": Door(legacy("web.example", "X-App-Version: 3.1"), "web", lambda place: place.web),
    "password": Door(legacy("shop.example", path="/user/password", newPassword=RIGHT), "shop", lambda _: "", False),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    gateway = Administered(tmp_path_factory.mktemp("doors"))
    gateway.options = ("--log-sample", 100, "--log-sample-seconds", 3_600, "--login-address", "100000/1s", "--authority", f"127.0.0.1:{gateway.port},shop.example,web.example")
    with gateway:
        yield Place(gateway)


def check(place: Place, call: Callable[[], Answer], door: Door, outcome: str, operation: str = "logins") -> Answer:
    """One call, and what each instrument shows of it."""
    before, seen = place.state(), len(place.lines())
    answer = call()
    events: list[dict] = []
    until(lambda: events.extend(place.lines()[seen:]) or events, "the call is not in the log")
    assert [event["code"] for event in events] == [outcome if outcome != "accepted" else "ok"]
    after = place.state()
    changed = {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}
    counted = {}
    for (name, labels), by in changed.items():
        of = dict(labels)
        counted[name] = counted.get(name, []) + [(of.get("app"), of.get("release"), of.get("outcome") or of.get("code"), by)]
    expected = {"countersign_requests_total": [(door.app, door.release(place), outcome, 1)]}
    if door.counts_logins:
        expected[f"countersign_{operation}_total"] = [(None, None, "succeeded" if outcome == "accepted" else outcome, 1)]
    if outcome != "accepted":
        expected["countersign_refusals_total"] = [(None, None, outcome, 1)]
    assert counted == expected
    guesses = [code for _, _, code, _ in counted.get("countersign_refusals_total", []) if re.fullmatch(GUESS, code)]
    assert guesses == ([outcome] if outcome in ("wrong-credentials", "too-many-attempts") else [])
    return answer


@pytest.mark.parametrize("name", DOORS)
def test_each_outcome_of_a_door(place, name):
    door = DOORS[name]
    check(place, lambda: door.call(place, name, RIGHT), door, "accepted")
    check(place, lambda: door.call(place, name, WRONG), door, "wrong-credentials")
    check(place, lambda: door.call(place, f"nobody-{name}", WRONG), door, "wrong-credentials")
    place.gateway.admin("account", "lock", door.app, name)
    check(place, lambda: door.call(place, name, RIGHT), door, door.locked)
    place.gateway.admin("account", "unlock", door.app, name)
    number = len(place.lines())
    for guesses in range(1, 21):
        answer = door.call(place, name, WRONG)
        if b'"too-many-attempts"' in answer.body or b'"code":-8' in answer.body:
            break
    until(lambda: len(place.lines()) == number + guesses, "not every guess is in the log")
    check(place, lambda: door.call(place, name, RIGHT), door, "too-many-attempts")


def test_a_sign_up_and_a_renewal(place):
    door = DOORS["unsigned"]
    sign_up = Door(legacy("shop.example", path="/user/register"), "shop", lambda _: "", False)
    check(place, lambda: sign_up.call(place, "new", RIGHT), sign_up, "accepted")
    check(place, lambda: sign_up.call(place, "new", RIGHT), sign_up, "name-taken")
    check(place, lambda: sign_up.call(place, "a\nb", RIGHT), sign_up, "malformed")
    token = json.loads(check(place, lambda: door.call(place, "new", RIGHT), door, "accepted").body)["loginToken"]
    for sent, outcome in ((token, "accepted"), ("l_" + "A" * 43, "session-ended")):
        check(place, lambda sent=sent: place.post("shop.example", "/user/token", loginToken=sent), door, outcome, "refreshes")


def test_a_client_that_sees_itself_that_the_password_is_wrong(place, tmp_path):
    alice = Person(place.gateway, tmp_path / "alice", "opaque").signs_up()
    before = place.gateway.metrics()
    assert alice.run("login", "--account", "opaque", "--password-stdin", stdin=f"{WRONG}\n").returncode == 1
    after = place.gateway.metrics()
    assert after["countersign_login_starts_total", ()] == before["countersign_login_starts_total", ()] + 1
    succeeded = "countersign_logins_total", (("outcome", "succeeded"),)
    assert after.get(succeeded) == before.get(succeeded)


def test_the_meter_has_what_the_metrics_have(place):
    def metrics() -> dict[tuple[str, str, str], float]:
        found: dict[tuple[str, str, str], float] = {}
        for (name, labels), value in place.gateway.metrics().items():
            if name == "countersign_requests_total":
                of = dict(labels)
                key = of["app"], of["release"], of["outcome"]
                found[key] = found.get(key, 0) + value
        return found

    until(lambda: place.counted() == metrics(), lambda: (place.counted(), metrics()))


def test_a_stranger_that_signs_out_writes_no_more_lines_than_others(place):
    """A sign-out is answered alike for every token, so it proves nothing, and its lines are sampled."""
    for _ in range(120):
        assert place.post("shop.example", "/user/logout", token="b_" + "A" * 43).status == 200
    until(lambda: place.lines(), "no event")
    place.gateway.stop()
    lines = [json.loads(line) for line in place.gateway.log_path.read_text().splitlines()]
    assert len([line for line in lines if line.get("path") == "/user/logout"]) == 100
    place.gateway.start()


def test_an_attacked_account_is_named(tmp_path):
    """By its number in the log, at most once an hour with the count, and by `account show`; a name without an account is not."""
    gateway = Administered(tmp_path, clock=Clock(tmp_path))
    gateway.options = ("--login-account", "1000/1s", "--login-address", "100000/1s")
    with gateway:
        bearer.add_app(gateway, 2)

        def guess(name: str, count: int = 1, password: str = WRONG) -> None:
            for _ in range(count):
                body = json.dumps({"account": name, "password": password, "device": bearer.DEVICE}).encode()
                gateway.send(gateway.key.request("POST", f"{bearer.PREFIX}/login/password", body,
                                                 fields=[("content-type", "application/json")]))

        def shown(name: str) -> dict:
            return json.loads(gateway.admin("account", "show", "demo", name, "--json").out)

        def reports() -> list[str]:
            return [event["message"] for event in gateway.events() if event.get("log") == "guesses"]

        guess("user-1", 9)
        guess("user-1", 3, "password of user-1")
        guess("nobody", 30)
        guess("user-0", 12)
        until(lambda: gateway.clock.advance(1) or reports(), "nothing is reported")
        until(lambda: gateway.clock.advance(1) or shown("user-0")["failed_logins"], "it is not shown")
        number = shown("user-0")["number"]
        assert [message.partition(";")[0] for message in reports()] == [
            f"app demo, account {number}: 12 failed logins since the last report"]
        assert shown("user-0")["failed_logins"]["count"] == 12 and shown("user-1")["failed_logins"]["count"] == 9
        assert gateway.metrics()["countersign_accounts_attacked", ()] == 2, "that of the name without an account, too"
        # No second report within the hour; then one with all that came meanwhile.
        guess("user-0", 15)
        until(lambda: gateway.clock.advance(1) or shown("user-0")["failed_logins"]["count"] == 27, lambda: shown("user-0"))
        assert len(reports()) == 1
        guess("user-0", 2)
        gateway.clock.advance(3_601)
        until(lambda: gateway.clock.advance(1) or len(reports()) == 2, reports)
        assert f"account {number}: 17 failed logins" in reports()[1]
        # It survives a restart, without a name on the disk.
        gateway.stop()
        gateway.start()
        assert shown("user-0")["failed_logins"]["count"] == 29
        assert b"user-0" not in (gateway.data / "account-guesses").read_bytes()
