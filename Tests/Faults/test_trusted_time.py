"""A server whose clock was set: it ends nothing and deletes nothing by a time that one clock alone says has come. It tells so to
`/ready`, the log, the audit log and the metrics, and goes on when the clock has been right for ten minutes, or is confirmed."""

import base64
import json
import pathlib
import re
import signal
import time
import urllib.error
import urllib.request

import pytest

from bearer import PREFIX, add_app, asked, bearing, login
from clock import Clock
from gateway import Gateway, run
from nodes import Cluster, sent
from ports import reserve_port
from postgres import Postgres, programs
from redis import RedisServer, is_installed
from waiting import until

DAYS_91 = 91 * 86_400
IDLE = 30 * 86_400


class Place:
    def __init__(self, folder: pathlib.Path, *options: object):
        self.clock, self.port = Clock(folder), reserve_port()
        self.gateway = Gateway(folder / "gateway", "--admin", f"127.0.0.1:{self.port}", "--login-address", "10000/1s",
                               "--login-account", "10000/1s", "--log-sample", 0, *options, clock=self.clock)

    def asks(self, request: bytes) -> tuple[str, dict]:
        with self.gateway.connect() as connection:
            said, answer = asked(connection, request)
            return said, json.loads(answer.body)

    def logs_in(self, name: str) -> dict:
        """Signed by the server's clock."""
        said, body = self.asks(login(self.gateway, name))
        assert said == "accepted", body
        return body

    def bearing(self, token: str) -> str:
        return self.asks(bearing(self.gateway, token))[0]

    def renewing(self, made: dict) -> str:
        body = json.dumps({"login_token": made["login_token"]}).encode()
        return self.asks(self.gateway.key.request("POST", f"{PREFIX}/token", body))[0]

    def time(self) -> int | str:
        answer = self.gateway.send(f"GET {PREFIX}/time HTTP/1.1\r\nHost: {self.gateway.key.authority}\r\n\r\n".encode())
        body = json.loads(answer.body)
        return body["time"] if answer.status == 200 else body["code"]

    def page(self, path: str, token: str = "") -> tuple[int, str]:
        fields = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=fields)) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def causes(self) -> list[str]:
        return [reason["cause"] for reason in json.loads(self.page("/ready")[1])["reasons"]]

    def trusts(self) -> bool:
        """As the metrics say."""
        token = (self.gateway.data / "admin-token").read_text().strip()
        return "\ncountersign_clock_trusted 1\n" in self.page("/metrics", token)[1]

    def turns(self, times: int = 2) -> None:
        """So many turns of the maintenance pass, each with one batch of sweeps. A reload is logged before the rest of its turn."""
        for _ in range(times + 1):
            before = self.reloads()
            self.clock.advance(2.5)
            self.gateway.process.send_signal(signal.SIGHUP)
            until(lambda before=before: self.reloads() > before, "no turn")

    def reloads(self) -> int:
        return [event.get("log") for event in self.gateway.events()].count("reload")

    def waits(self, seconds: int) -> None:
        """Time passes, and the server looks at its clock meanwhile."""
        for _ in range(seconds // 100):
            self.clock.advance(100)
            self.page("/ready")

    def sessions(self) -> dict[str, str | None]:
        listed = json.loads(self.gateway.admin("session", "list", "demo", "--ended", "--json").out)["sessions"]
        return {each["session"]: each["ended"] for each in listed}

    def audited(self, action: str) -> int:
        records = self.gateway.admin("audit", "list", "--json").out
        return records.count(f'"{action}"')


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    with place.gateway:
        add_app(place.gateway, 3)
        place.gateway.admin("app", "policy", "demo", "--set", "session-idle=30d", "--set", "assertion=on")
        yield place


def test_a_jump_ahead_ends_and_deletes_nothing(place):
    place.waits(700)
    made = [place.logs_in(f"user-{number % 3}") for number in range(30)]
    before = place.sessions()
    assert len(before) == 30 and set(before.values()) == {None}
    assert place.trusts() and place.causes() == []
    place.clock.jumps(DAYS_91)
    assert {place.bearing(each["token"]) for each in made} == {"unavailable"}
    assert place.renewing(made[0]) == "unavailable"
    assert place.time() == "unavailable"
    assert place.causes() == ["clock-set"] and not place.trusts()
    until(lambda: "clock" in {event.get("log") for event in place.gateway.events()} or place.turns(), "no word in the log")
    place.turns(3)
    place.clock.jumps(0)
    assert place.sessions() == before
    assert {place.bearing(each["token"]) for each in made} == {"accepted"}
    assert place.causes() == [] and not place.trusts(), "it serves, and what depends on the clock waits"
    assert place.time() == "unavailable"
    place.waits(700)
    assert place.trusts() and abs(place.time() - place.clock.now) < 3
    until(lambda: place.audited("clock.trust") == 1 or place.turns(1), "not recorded")
    assert place.audited("clock.doubt") == 1


def test_what_is_over_is_over_and_deleted_when_time_really_passes(place):
    made = place.logs_in("user-0")
    place.waits(700)
    place.clock.advance(IDLE)
    assert place.bearing(made["token"]) == "session-ended" and place.renewing(made) == "session-ended"
    assert set(place.sessions().values()) == {None}, "nothing ends it"
    place.clock.advance(30 * 86_400 + 10)
    until(lambda: not place.sessions() or place.turns(1), "not deleted after thirty days")


def test_a_retirement_at_a_time_waits_for_a_trusted_clock(place):
    place.waits(700)
    made = place.logs_in("user-0")
    place.gateway.admin("release", "retire", place.gateway.key.key_id, "--at", str(place.clock.now + 86_400),
                        "--update-url", "https://shop.example/update")
    assert place.bearing(made["token"]) == "accepted"
    place.clock.jumps(2 * 86_400)
    assert place.bearing(made["token"]) == "unavailable"
    place.clock.jumps(0)
    assert place.bearing(made["token"]) == "accepted"
    place.clock.advance(2 * 86_400)
    place.waits(700)
    assert place.bearing(made["token"]) == "update-required"


def test_a_jump_that_persists_is_trusted_when_somebody_confirms_it(place):
    place.waits(700)
    made = place.logs_in("user-0")
    place.clock.jumps(DAYS_91)
    place.waits(4_000)
    assert place.bearing(made["token"]) == "unavailable" and not place.trusts()
    # A restart is no way around: the machine has been up all the time.
    assert place.gateway.stop() == 0
    place.gateway.start()
    place.waits(4_000)
    assert place.bearing(made["token"]) == "unavailable" and not place.trusts()
    place.gateway.admin("replay", "confirm-clock", "--yes")
    assert place.trusts() and place.causes() == []
    until(lambda: place.bearing(made["token"]) == "session-ended" or place.clock.advance(10), "not ended")
    assert set(place.sessions().values()) == {None}, "sweeps wait"


def pays(place: Place, key: str = "one") -> tuple[int, str]:
    """Signed by the server's clock; the echo shows each request another signature, so that only a kept result is the same twice."""
    answer = place.gateway.send(place.gateway.key.request("POST", "/pay", b"amount=1", fields=[("idempotency-key", key)]))
    return answer.status, answer.body.decode()


@pytest.mark.parametrize("first, second", [(0, 2 * 86_400), (-2 * 86_400, 0)], ids=["second under a jump", "first under a jump"])
def test_a_keyed_request_is_not_done_again_under_a_clock_that_jumped(place, first, second):
    """A copy finds the first one's result: it is not forgotten early, and has the time at which it really began."""
    place.waits(700)
    place.clock.jumps(first)
    done = pays(place)
    assert done[0] == 200
    place.clock.jumps(second)
    place.turns(3)
    assert pays(place) == done
    place.clock.jumps(0)
    place.waits(700)
    place.turns(3)
    assert pays(place) == done


def test_a_jump_makes_no_room_for_other_keys(tmp_path):
    """While no time has certainly come, no key is old enough to be displaced: its request would be executed again."""
    place = Place(tmp_path, "--limit-kept-keys", 100)
    with place.gateway:
        add_app(place.gateway, 0)
        place.waits(700)
        answers = {key: pays(place, key) for key in map(str, range(120))}
        kept = {key: answer for key, answer in answers.items() if answer[0] == 200}
        assert 0 < len(kept) < 120
        place.waits(700)
        place.clock.jumps(2 * 86_400)
        assert {pays(place, f"later {number}")[0] for number in range(10)} == {503}
        place.clock.jumps(0)
        assert {key: pays(place, key) for key in kept} == kept


@pytest.mark.parametrize("shift", [-DAYS_91, DAYS_91], ids=["behind", "ahead"])
def test_no_session_begins_or_is_renewed_by_a_clock_in_doubt(place, shift):
    """Its times would be wrong: it would end at once, or outlive its policy."""
    place.waits(700)
    made = place.logs_in("user-0")
    place.clock.jumps(shift)
    assert place.renewing(made) == "unavailable"
    assert place.asks(login(place.gateway, "user-1"))[0] == "unavailable"
    place.clock.jumps(0)
    assert place.bearing(made["token"]) == "accepted" and place.renewing(made) == "accepted"
    place.waits(700)
    place.turns(3)
    assert len(place.sessions()) == 1 and set(place.sessions().values()) == {None}


def test_a_session_that_ends_before_the_clock_is_trusted_again_is_not_renewed_meanwhile(place):
    made = place.logs_in("user-0")
    place.clock.advance(IDLE - 300)
    assert place.time() != "unavailable"
    place.clock.jumps(60)
    assert place.time() == "unavailable"
    place.clock.jumps(0)
    place.clock.advance(400)
    assert place.causes() == [] and place.renewing(made) == "unavailable"
    place.waits(700)
    assert place.renewing(made) == "session-ended"


def test_a_jump_while_no_server_runs(place):
    place.waits(700)
    made = place.logs_in("user-0")
    assert place.gateway.stop() == 0
    place.clock.jumps(DAYS_91)
    place.gateway.start()
    assert place.bearing(made["token"]) == "unavailable" and not place.trusts()


def test_restarts_do_not_refill_the_allowance_of_first_steps(place):
    """Small steps of a machine that was just started are taken for its synchronization: two minutes in all."""
    place.gateway.admin("app", "policy", "demo", "--set", "session-idle=15m")
    made = place.logs_in("user-0")
    for number in range(1, 9):
        place.clock.jumps(number * 120)
        assert place.gateway.stop() == 0
        place.gateway.start()
        assert place.causes() == ([] if number == 1 else ["clock-set"]), number
    assert place.bearing(made["token"]) == "unavailable"


def test_a_restart_of_the_machine(place):
    """Its uptime measures nothing of the time before."""
    place.waits(700)
    made = place.logs_in("user-0")
    assert place.gateway.stop() == 0
    path = place.gateway.data / "clock"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"boot": "another"}))
    place.clock.jumps(3_600)
    place.gateway.start()
    assert place.causes() == [] and place.trusts() and place.bearing(made["token"]) == "accepted"


def test_a_repeated_renewal_after_a_jump_is_no_reuse(place):
    place.waits(700)
    made = place.logs_in("user-0")
    body = json.dumps({"login_token": made["login_token"]}).encode()
    renew = lambda: place.asks(place.gateway.key.request("POST", f"{PREFIX}/token", body))
    said, renewed = renew()
    assert said == "accepted" and place.bearing(renewed["token"]) == "accepted"
    place.clock.jumps(60)
    assert renew()[0] == "unavailable"
    place.clock.jumps(0)
    assert renew()[0] == "accepted" and set(place.sessions().values()) == {None}


def test_what_is_written_under_a_jump_has_the_time_that_passed(place):
    """A sign-out, the records of the audit log, and what a backend and a client are told."""
    place.waits(700)
    made = place.logs_in("user-0")
    place.clock.jumps(-DAYS_91)
    assert place.time() == "unavailable"
    until(lambda: place.audited("clock.doubt") or place.turns(1), "not recorded")
    told = place.gateway.send(place.gateway.key.request())
    times = [issued_at(json.loads(told.body)["headers"]["countersign-assertion"]), signed_at(told)]
    times.append(signed_at(place.gateway.send(login(place.gateway, "user-0"))))
    assert place.asks(bearing(place.gateway, made["token"], "POST", "/logout"))[0] == "accepted"
    place.clock.jumps(0)
    listed = json.loads(place.gateway.admin("session", "list", "demo", "--ended", "--json").out)["sessions"]
    assert [each["ended"] for each in listed] == ["signed-out"] and abs(listed[0]["ended_at"] - place.clock.now) < 60
    records = json.loads(place.gateway.admin("audit", "list", "--json").out)["records"]
    times += [record["time"] for record in records if record["action"] == "clock.doubt"]
    assert len(times) == 4 and all(abs(time - place.clock.now) < 120 for time in times), times


def test_the_meter_has_the_time_that_passed(place):
    place.waits(700)
    place.clock.jumps(-DAYS_91)
    assert place.gateway.send(place.gateway.key.request()).status == 200

    def figures() -> dict:
        return json.loads(place.gateway.admin("meter", "demo", "--json").out)["releases"][0]

    until(lambda: figures()["accepted"] or place.clock.advance(2.5), "not counted")
    assert abs(figures()["last_seen"] - place.clock.now - DAYS_91) < 60


def test_another_proxy_is_told_the_time_that_passed(tmp_path):
    place = Place(tmp_path, "--tls", "off", "--decide", "nginx", "--trusted-proxies", "127.0.0.1")
    with place.gateway as gateway:
        add_app(gateway, 0)
        gateway.admin("app", "policy", "demo", "--set", "assertion=on")
        place.clock.jumps(-DAYS_91)
        lines = gateway.key.request("GET", "/orders").decode().split("\r\n")
        lines[0] = f"GET {PREFIX}/decide HTTP/1.1"
        lines[1:1] = ["X-Original-Method: GET", "X-Original-URI: /orders", f"X-Original-Host: {gateway.key.authority}",
                      f"Countersign-Decide: {(gateway.data / 'decide-secret').read_text()}"]
        told = gateway.send("\r\n".join(lines).encode())
        assert told.status == 200, told.body
        assert abs(issued_at(told.get("countersign-assertion")) - place.clock.now - DAYS_91) < 60


def issued_at(assertion: str) -> int:
    return json.loads(base64.urlsafe_b64decode(assertion.split(".")[1] + "=="))["iat"]


def signed_at(answer) -> int:
    return int(re.search("created=([0-9]+)", answer.get("signature-input"))[1])


@pytest.mark.parametrize("kept", [b"{", b"{" * 5_000, None, b'{"boot":"x","trusted":1,"last_trusted":1,"confirmation":0,"mark_wall":0,"mark_uptime":-9223372036854775808}'],
                         ids=["damaged", "oversized", "a folder", "overflowing"])
def test_a_damaged_record_of_the_clock_launders_no_jump(place, kept):
    place.waits(700)
    made = place.logs_in("user-0")
    place.clock.jumps(DAYS_91)
    assert place.bearing(made["token"]) == "unavailable"
    assert place.gateway.stop() == 0
    path = place.gateway.data / "clock"
    path.unlink()
    if kept is None:
        path.mkdir()
    else:
        path.write_bytes(kept)
    place.gateway.start()
    assert place.bearing(made["token"]) == "unavailable" and not place.trusts()
    assert "is damaged" in place.gateway.log_path.read_text()


def test_an_earlier_confirmation_says_nothing_of_a_later_doubt(place):
    place.waits(700)
    place.gateway.admin("replay", "confirm-clock", "--yes")
    place.clock.advance(86_400)
    place.clock.jumps(-86_400)
    assert place.time() == "unavailable"
    assert place.gateway.stop() == 0
    (place.gateway.data / "clock").unlink()
    place.gateway.start()
    assert not place.trusts()


def test_old_clients_begin_no_session_by_a_clock_in_doubt(tmp_path):
    """At the paths of old clients, which sign nothing; a version that looks retired is not."""
    place = Place(tmp_path)
    with place.gateway as gateway:
        gateway.add_app("shop", schemes="token", legacy_login="on", legacy_session="authority", legacy_renewal="on",
                        legacy_host="127.0.0.1", legacy_paths="logout:/login/logout.php", token_in="bearer", release_in="header:X-App-Version",
                        platform_in="header:X-Platform")
        gateway.admin("account", "import", "shop", "-",
                      stdin=json.dumps({"name": "ada", "user_id": 7, "rung": "plain-post", "value": "pw"}))
        release = json.loads(gateway.admin("release", "add", "shop", "--platform", "ios", "--version", "1.0", "--scheme", "token",
                                           "--json").out)["key_id"]

        def posted(path: str, form: str, *fields: str) -> dict:
            lines = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{gateway.port}", f"Content-Length: {len(form)}",
                     "Content-Type: application/x-www-form-urlencoded", *fields, "", form]
            return json.loads(gateway.send("\r\n".join(lines).encode()).body)

        def logs_in(*fields: str) -> dict:
            return posted("/login/login.php", "username=ada&password=pw", *fields)

        place.waits(700)
        gateway.admin("release", "retire", release, "--at", str(place.clock.now + 86_400), "--update-url", "https://shop.example/")
        version = ("X-App-Version: 1.0", "X-Platform: ios")
        made = logs_in(*version)
        place.clock.jumps(2 * 86_400)
        assert logs_in()["err"]["code"] == -13, "unavailable"
        assert posted("/login/token.php", f"loginToken={made['loginToken']}")["err"]["code"] == -13
        assert logs_in(*version)["err"]["code"] == -13
        assert posted("/login/logout.php", f"token={made['token']}") == {"result": 1}
        place.clock.jumps(0)
        (session,) = json.loads(gateway.admin("session", "list", "shop", "--ended", "--json").out)["sessions"]
        assert session["ended"] == "signed-out" and abs(session["ended_at"] - place.clock.now) < 60
        assert logs_in(*version)["userId"] == 7


@pytest.mark.skipif(programs() is None, reason="no postgres")
def test_a_command_under_a_wrong_clock_spoils_no_node(tmp_path):
    """Its records have the database's time, so that the nodes' own clocks do not look wrong after a restart; it makes no code."""
    database, wrong = Postgres(), Clock(tmp_path / "wrong")
    wrong.jumps(DAYS_91)
    environments = {number: {"COUNTERSIGN_REPLAY": "postgres"} for number in (0, 1)}
    with Cluster(tmp_path, database.create("commands"), (), (), accounts=2, environments=environments) as cluster:
        first = cluster.nodes[0]

        def under_it(*words: str, stdin: str = ""):
            return run(*words, "--data", first.data, stdin=stdin, environment={**first.environment, **wrong.environment})

        added = under_it("account", "add", "demo", "zoe")
        assert added.returncode == 0, added.err
        for words in (("account", "reset", "demo", "user-1"), ("account", "code", "demo", "user-1")):
            refused = under_it(*words)
            assert refused.returncode == 1 and "ahead of the database's" in refused.err and refused.out == "", refused.err
        newest = json.loads(first.admin("audit", "list", "--json").out)["records"][-1]
        assert newest["action"] == "account.add" and newest["time"] <= time.time() + 5
        for node in cluster.nodes:
            assert node.stop() == 0
            path = node.data / "clock"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"boot": "another"}))
            node.start()
            until(lambda node=node: node.causes() == [], node.causes)
    database.remove()


@pytest.mark.skipif(programs() is None or not is_installed(), reason="no postgres, or no redis-server")
@pytest.mark.parametrize("whose", ["node", "database"])
def test_one_clock_of_several_machines_is_set(whose, tmp_path):
    """A node's clock: the other node goes on. The database's: no node follows it."""
    database, guards = Postgres(has_clock=True), Clock(tmp_path / "guard")
    # A replay guard refuses a clock that differs from its own: it is on the server whose clock is right.
    redis = RedisServer(environment=guards.environment) if whose == "database" else None
    guard = redis.address if redis else "postgres"
    clocks = [Clock(tmp_path / "first"), Clock(tmp_path / "second")]
    environments = {number: {**clock.environment, "COUNTERSIGN_REPLAY": guard} for number, clock in enumerate(clocks)}
    with Cluster(tmp_path, database.create("clocks"), (), (), accounts=2, environments=environments) as cluster:

        def asks(node, request: bytes) -> str:
            with node.connect() as line:
                answer = sent(line, request)
                return "accepted" if answer.status == 200 else json.loads(answer.body)["code"]

        def bears(number: int) -> str:
            """Signed by the node's clock."""
            fields = [("authorization", f"Bearer {token}")]
            return asks(cluster.nodes[number], cluster.key.request("GET", f"{PREFIX}/session", fields=fields, created=clocks[number].now))

        with cluster.nodes[0].connect() as line:
            token = cluster.logged_in(line)
        # Each step is less than clocks may differ.
        for _ in range(175):
            for clock in (database.clock, guards, *clocks):
                clock.advance(4)
        for node in cluster.nodes:
            until(lambda node=node: node.causes() == [], node.causes)
        wrong = {"node": [1], "database": [0, 1]}[whose]
        right = {0, 1} - set(wrong)
        {"node": clocks[1], "database": database.clock}[whose].jumps(DAYS_91)
        for number in wrong:
            node = cluster.nodes[number]
            until(lambda node=node: node.causes() == ["clock", "clock-set"], node.causes)
            assert "the database's" in node.asked("/ready")[1]
        for number in right:
            assert cluster.nodes[number].causes() == []
        logins = [asks(node, login(cluster, "user-1", created=clock.now)) for node, clock in zip(cluster.nodes, clocks, strict=True)]
        assert logins == ["accepted" if number in right else "unavailable" for number in (0, 1)]
        # Its wall clock says that the session is over, or it does not.
        assert [bears(number) for number in (0, 1)] == ["accepted", "unavailable" if whose == "node" else "accepted"]
        {"node": clocks[1], "database": database.clock}[whose].jumps(0)
        for node in cluster.nodes:
            until(lambda node=node: node.causes() == [], node.causes)
        assert [bears(number) for number in (0, 1)] == ["accepted"] * 2
    if redis:
        redis.remove()
    database.remove()
