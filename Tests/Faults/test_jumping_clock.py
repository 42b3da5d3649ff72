"""A server whose clock jumps while it runs, and jumps back: no session is lost, no request is accepted
twice, tokens expire by the server's clock, neither never nor at once, and no client is taught a time that is not trusted."""

import contextlib
import json
import pathlib

import pytest

from bearer import PREFIX, add_app, asked, login
from clock import Clock
from gateway import Gateway
from person import PASSWORD, Person
from sampling import sampled
from waiting import until

SHIFTS = {"+1s": 1, "-1s": -1, "+5m": 300, "-5m": -300, "+1h": 3_600, "-1h": -3_600, "-1d": -86_400}
WINDOW, LIFETIME, TOLERANCE = 60, 7_200, 5


class Place:
    def __init__(self, gateway: Gateway, clock: Clock):
        self.gateway, self.clock = gateway, clock

    def jumps(self, shift: int) -> None:
        """And it has: a server whose clock is trusted says what time it is, another says so."""
        self.clock.jumps(shift)
        said = self.time()
        if abs(shift) > TOLERANCE:
            assert said == "unavailable", "the shift did not take effect"
        else:
            assert said == "unavailable" or abs(said - self.clock.now) < 3

    def time(self) -> int | str:
        answer = self.gateway.send(f"GET {PREFIX}/time HTTP/1.1\r\nHost: {self.gateway.key.authority}\r\n\r\n".encode())
        body = json.loads(answer.body)
        return body["time"] if answer.status == 200 else body["code"]

    def is_right_again(self) -> None:
        """For ten minutes: the clock is trusted."""
        self.jumps(0)
        for _ in range(7):
            self.clock.advance(100)
            self.time()
        assert abs(self.time() - self.clock.now) < 3

    def asks(self, request: bytes) -> tuple[str, dict]:
        with self.gateway.connect() as connection:
            said, answer = asked(connection, request)
            return said, json.loads(answer.body)

    def tries(self, make) -> tuple[str, dict, bytes]:
        """What is said of the first request that the replay table can tell of, and that request."""
        for _ in range(50):
            request = make()
            said, body = self.asks(request)
            if said != "unavailable":
                break
        return said, body, request

    def request(self, **options) -> bytes:
        """Signed by the server's clock, as a client signs that has learnt it."""
        return self.gateway.key.request("POST", "/pay", b"amount=1", **{"created": self.clock.now, **options})

    def let_in(self) -> bytes:
        said, _, request = self.tries(self.request)
        assert said == "accepted", "who follows the clock is let in"
        return request

    def logs_in(self, name: str) -> tuple[str, dict]:
        return self.tries(lambda: login(self.gateway, name, created=self.clock.now))[:2]

    def bearing(self, token: str) -> str:
        fields = [("authorization", f"Bearer {token}")]
        return self.tries(lambda: self.gateway.key.request("GET", f"{PREFIX}/session", fields=fields, created=self.clock.now))[0]

    def does(self, person: Person, command: str, *arguments: object, stdin: str = "") -> None:
        for _ in range(20):
            done = person.run(command, *arguments, stdin=stdin)
            if "too-many-attempts" in done.err:
                # What was counted before the clock was set back counts as if it were new, and is waited for once.
                self.clock.advance(1)
            elif "unavailable" not in done.out + done.err:
                break
        assert done.returncode == 0, done.err

    def codes(self, path: str) -> list[str]:
        """What the log says of requests for the path, the last of which was let in."""
        def found() -> list[str]:
            return [event["code"] for event in self.gateway.events() if event.get("path") == path]

        until(lambda: "ok" in found(), found)
        return found()

    def renewal(self, login_token: str) -> bytes:
        body = json.dumps({"login_token": login_token}).encode()
        return self.gateway.key.request("POST", f"{PREFIX}/token", body, created=self.clock.now)

    def renewed(self, login_token: str) -> tuple[str, dict]:
        return self.tries(lambda: self.renewal(login_token))[:2]


@contextlib.contextmanager
def begun(folder: pathlib.Path):
    clock = Clock(folder)
    # Every refusal is looked up in the log, so none may be left out of it.
    gateway = Gateway(folder / "gateway", "--login-address", "10000/1s", "--login-account", "10000/1s", "--log-sample", 0,
                      environment=clock.environment)
    with gateway:
        add_app(gateway, 1)
        gateway.admin("app", "policy", "demo", "--set", "registration=open")
        yield Place(gateway, clock)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with begun(tmp_path_factory.mktemp("jumping")) as running:
        yield running


@pytest.fixture
def jumping(place):
    place.is_right_again()
    yield place
    place.jumps(0)


REFUSED = {"replayed", "stale", "unavailable"}


@pytest.mark.parametrize("shift", sampled(SHIFTS, "+5m", "-1d"))
def test_no_request_is_accepted_twice(jumping, shift):
    before = jumping.let_in()
    jumping.jumps(SHIFTS[shift])
    assert jumping.asks(before)[0] in REFUSED
    # A client with a correct clock is now off by as much, and is not told that its own is wrong.
    said, body = jumping.asks(jumping.request(created=jumping.clock.now - SHIFTS[shift]))
    if abs(SHIFTS[shift]) > WINDOW:
        assert said == "unavailable" and "time" not in body
    else:
        assert said in ("accepted", "unavailable")
    meanwhile = jumping.let_in()
    assert jumping.asks(meanwhile)[0] in REFUSED
    jumping.jumps(0)
    for request in (before, meanwhile):
        assert jumping.asks(request)[0] in REFUSED
    jumping.let_in()


@pytest.mark.parametrize("shift", sampled(SHIFTS, "+5m", "-1d"))
def test_tokens_live_by_the_servers_clock(jumping, shift):
    said, before = jumping.logs_in("user-0")
    assert said == "accepted" and jumping.bearing(before["token"]) == "accepted"
    jumping.jumps(SHIFTS[shift])
    assert jumping.bearing(before["token"]) == "accepted"
    # Nothing is renewed by a clock that another one contradicts.
    if abs(SHIFTS[shift]) > TOLERANCE:
        said, _ = jumping.asks(jumping.renewal(before["login_token"]))
        assert said == "unavailable"
        jumping.jumps(0)
    said, renewed = jumping.renewed(before["login_token"])
    assert said == "accepted" and abs(renewed["expires"] - jumping.clock.now - LIFETIME) < 5
    assert jumping.bearing(renewed["token"]) == "accepted"
    assert jumping.bearing(before["token"]) == "token-expired"
    # And none lives for ever: when its time is over, it is over, and its session is there.
    jumping.jumps(0)
    jumping.clock.advance(LIFETIME + 5)
    assert jumping.bearing(renewed["token"]) == "token-expired"
    assert jumping.renewed(renewed["login_token"])[0] == "accepted"


@pytest.mark.parametrize("shift", sampled(SHIFTS, "+5m", "-1d"))
def test_a_client_goes_on(place, tmp_path, shift):
    """It is told nothing while the server's clock is wrong, and goes on with the same session when it is right."""
    place.is_right_again()
    alice = Person(place.gateway, tmp_path / "alice", f"alice{SHIFTS[shift]}")
    alice.environment = place.clock.environment
    alice.signs_up().logs_in()
    session = alice.status("--offline")["session"]
    # The client's clock is right: it has a file of its own.
    own = Clock(tmp_path / "own")
    own.advance(place.clock.passed)
    alice.environment = own.environment
    place.jumps(SHIFTS[shift])
    path = f"/{alice.name}/wrong"
    done = alice.run("request", path)
    is_off = abs(SHIFTS[shift]) > WINDOW
    if is_off:
        assert done.returncode != 0 and "unavailable" in done.out
        assert not [event for event in place.gateway.events() if event.get("path") == path and event["code"] == "stale"]
    assert alice.status("--offline")["session"] == session
    place.jumps(0)
    path = f"/{alice.name}/right"
    place.does(alice, "request", path)
    assert "stale" not in place.codes(path)
    assert alice.status("--offline")["session"] == session
    place.does(alice, "login", "--account", alice.name, "--password-stdin", stdin=PASSWORD)
    assert alice.status("--offline")["session"] != session
    place.does(alice, "logout")


def test_nobody_waits_for_yesterdays_clock(tmp_path):
    """A user who signed in before the clock was set back is not locked out until the clock reaches that
    time again, but only for the announced time."""
    # Of its own: what was admitted before a confirmation stays refused.
    with begun(tmp_path) as place:
        assert place.logs_in("user-0")[0] == "accepted"
        place.jumps(SHIFTS["-1d"])
        assert place.asks(login(place.gateway, "user-0", created=place.clock.now))[0] == "unavailable"
        place.gateway.admin("replay", "confirm-clock", "--yes")
        waited = 0
        while (said := place.logs_in("user-0")[0]) in ("too-many-attempts", "unavailable"):
            # As `Retry-After` says: both limits grow by one each second, and the floor passes in minutes.
            place.clock.advance(1 if said == "too-many-attempts" else 10)
            waited += said == "too-many-attempts"
            assert waited < 10, "he is told to wait again and again"
        assert said == "accepted"


@pytest.mark.parametrize("shift", sampled(SHIFTS, "+5m", "-1d"))
def test_a_start_under_another_clock(place, shift):
    """A machine whose clock was set between two runs: what was accepted before is refused, and sessions are as they were."""
    place.is_right_again()
    said, made = place.logs_in("user-0")
    assert said == "accepted"
    before = place.let_in()
    for moment in (SHIFTS[shift], 0):
        assert place.gateway.stop() == 0
        place.clock.jumps(moment)
        place.gateway.start()
        place.jumps(moment)
        assert place.asks(before)[0] in REFUSED
        assert place.bearing(made["token"]) == "accepted"
        place.let_in()
