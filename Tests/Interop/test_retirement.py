"""The retirement of a version: by stages, by shares, undone; and the users that it would cut off."""

import json
import time
from urllib.parse import urlencode

import pytest

from backend import Backend
from gateway import Gateway, run
from l1_client import signed
from person import PASSWORD, Person

URL = "https://example.com/next"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with Backend() as backend, Gateway(tmp_path_factory.mktemp("retire"), "--tls", "off", "--upstream", backend.url) as running:
        running.add_app("demo")
        running.backend = backend
        yield running


def retire(place, key, *options: object) -> dict:
    return json.loads(place.admin("release", "retire", key.key_id, *options, "--update-url", URL, "--json").out)


def verdict(place, key, method: str = "POST", body: bytes = b"x"):
    """Status, code of a refusal, and what the answer says of an update."""
    answer = place.send(key.request(method, "/a", body if method == "POST" else b""), to_head=method == "HEAD")
    code = json.loads(answer.body)["code"] if answer.get("content-type") == "application/problem+json" else None
    return answer.status, code, answer.get("countersign-update")


def test_stages_and_back(place):
    """A running server follows each change with the next request."""
    key, end = place.add_release(version="stages"), int(time.time()) + 1_000
    assert verdict(place, key) == (200, None, None)
    retire(place, key, "--at", end, "--warn-at", end - 500)
    assert verdict(place, key) == (200, None, None)
    retire(place, key, "--at", end, "--warn-at", "now")
    told = f'stage=warn, at={end}, link="{URL}"'
    assert verdict(place, key) == (200, None, told), "a backend's answer says so too"
    retire(place, key, "--at", end, "--warn-at", "now", "--read-only-at", "now")
    told = told.replace("warn", "read-only")
    assert verdict(place, key, "GET") == verdict(place, key, "HEAD") == (200, None, told)
    assert verdict(place, key)[:2] == (426, "update-required")
    retire(place, key, "--at", "now")
    for method in ("GET", "POST"):
        assert verdict(place, key, method)[:2] == (426, "update-required")
    problem = json.loads(place.send(key.request()).body)
    assert problem["update_url"] == URL
    place.admin("release", "retire", key.key_id, "--undo")
    assert verdict(place, key) == (200, None, None)
    actions = [json.loads(line)["action"] if isinstance(line, str) else line["action"]
               for line in json.loads(place.admin("audit", "list", "--last", 5, "--json").out)["records"]]
    assert actions[-2:] == ["release.retire", "release.undo"]


def test_our_own_answers_say_it_under_their_signature(tmp_path):
    with Gateway(tmp_path) as place:
        place.add_app("demo")
        key = place.add_release()
        retire(place, key, "--at", int(time.time()) + 99, "--warn-at", "now")
        answer = place.send(key.request())
        assert answer.status == 200 and "stage=warn" in answer.get("countersign-update")
        assert '"countersign-update"' in answer.get("signature-input")


def test_a_backend_cannot_say_it(tmp_path):
    def forge(seen, sock):
        sock.sendall(b"HTTP/1.1 200 OK\r\nCountersign-Update: stage=warn\r\nCOUNTERSIGN_update: x\r\nX-Mine: y\r\n"
                     b"Content-Length: 0\r\n\r\n")

    with Backend(forge) as backend, Gateway(tmp_path, "--upstream", backend.url) as place:
        place.add_app("demo")
        answer = place.send(place.add_release().request())
        assert answer.get("x-mine") == "y"
        assert not [name for name, _ in answer.fields if name.startswith("countersign")]


def test_shares_grow_and_nobody_comes_back(place):
    """All callers of this test stand in one place, that of 127.0.0.1: as the share grows they are reached once, and stay so."""
    key, seen = place.add_release(version="shares"), []
    for percent in (0, 1, 10, 25, 50, 75, 99, 100):
        retire(place, key, "--at", "now", "--percent", percent)
        seen.append(verdict(place, key)[0])
    assert seen == sorted(seen) and (seen[0], seen[-1]) == (200, 426)
    now = int(time.time())
    retire(place, key, "--at", "now", "--percent", f"0,100@{now + 3600}")
    assert verdict(place, key)[0] == 200
    retire(place, key, "--at", "now", "--percent", f"0,100@{now - 1}")
    assert verdict(place, key)[0] == 426


def test_l1_callers_get_the_link_from_that_moment(place):
    place.admin("app", "policy", "demo", "--set", "schemes=message-signatures,form-md5")
    place.admin("release", "add", "demo", "--platform", "ios", "--version", "1.0", "--scheme", "form-md5", "--key-id",
                "l1-app-identity", "--secret", "l1-private-key")
    place.admin("release", "retire", "l1-app-identity", "--at", int(time.time()) + 3, "--update-url", URL)

    def call():
        body = urlencode(signed({}, "l1-app-identity", "l1-private-key", "ios", "1.0")).encode()
        head = (f"POST /a HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                f"Content-Length: {len(body)}\r\n\r\n")
        return place.send(head.encode() + body)

    assert b'"err"' not in call().body
    time.sleep(3.5)
    answer = call()
    error = json.loads(answer.body)["err"]
    assert (answer.status, error["code"], error["eventId"]) == (200, -99, URL)


def test_what_makes_no_sense_is_refused_and_changes_nothing(place):
    key = place.add_release(version="sense")
    for said, *options in (("--warn-at is after --at", "--at", "100", "--warn-at", "200"),
                           ("--warn-at is after --read-only-at", "--at", "300", "--warn-at", "200", "--read-only-at", "100"),
                           ("whole number from 0 to 100", "--at", "1", "--percent", "101"),
                           ("no smaller shares", "--at", "1", "--percent", "50@10,20@20"), ("one or the other", "--undo", "--at", "1")):
        more = () if "--undo" in options else ("--update-url", URL)
        done = run("release", "retire", key.key_id, *options, *more, "--data", place.data)
        assert done.returncode == 2 and said in done.err, done.err
    assert verdict(place, key) == (200, None, None)


def test_undo_of_what_was_not_done(place):
    key = place.add_release(version="undone")
    done = run("release", "retire", key.key_id, "--undo", "--data", place.data)
    assert done.returncode == 1 and "not retired" in done.err


def test_impact(place):
    key, other = place.add_release(version="impact"), place.add_release(version="rest")
    for _ in range(3):
        assert verdict(place, key)[0] == 200
    assert verdict(place, other)[0] == 200
    retire(place, key, "--at", "now")
    assert verdict(place, key)[0] == 426

    def impact() -> dict:
        return json.loads(place.admin("release", "impact", key.key_id, "--days", 1, "--json").out)

    deadline = time.monotonic() + 10
    while (found := impact())["sent_away"] < 1 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert (found["accepted"], found["sent_away"], found["stage"]) == (3, 1, "retired")
    assert found["app_accepted"] > 3 and 0 < found["share_percent"] < 100
    assert abs(found["last_accepted"] - time.time()) < 30 and found["platform_sessions"] == 0
    assert [day["accepted"] for day in found["days"]] == [3]
    assert found["sessions"] == found["unknown_sessions"] == 0
    text = place.admin("release", "impact", key.key_id).out
    assert "3 requests would be cut off" in text and "retired" in text


def test_impact_counts_the_sessions_of_a_version(tmp_path):
    """As of their last login or refresh: that is where a release vouches for its version."""
    with Gateway(tmp_path / "gateway") as place:
        place.add_app("demo", registration="open")
        alice = Person(place, tmp_path / "alice", "alice").signs_up().logs_in()
        other = place.add_release(version="another")

        def sessions(key_id: str) -> tuple:
            found = json.loads(place.admin("release", "impact", key_id, "--json").out)
            return found["sessions"], found["platform_sessions"], found["unknown_sessions"]

        own = alice.release["key_id"]
        assert sessions(own)[0] == 1 and sessions(other.key_id)[0] == 0
        assert sessions(own)[1:] == (1, 0)
        assert "1 live sessions were last signed in or renewed by it" in place.admin("release", "impact", own).out
        assert alice.run("logout").returncode == 0
        assert sessions(own) == (0, 0, 0)


def test_a_session_reads_on_in_a_version_that_may_only_read(tmp_path):
    """Its token is renewed and it signs out; what would change something, and a new login, are for the next version."""
    with Gateway(tmp_path / "gateway") as place:
        place.add_app("demo", registration="open", token_lifetime="2s")
        alice = Person(place, tmp_path / "alice", "alice").signs_up().logs_in()
        place.admin("release", "retire", alice.release["key_id"], "--at", int(time.time()) + 999, "--read-only-at", "now",
                    "--update-url", URL)
        assert alice.calls("/read")["headers"]["countersign-account"] == "name:alice"
        assert "stage=read-only" in alice.run("request", "/read").err
        time.sleep(2.5)
        assert alice.calls("/read-on")["headers"]["countersign-account"] == "name:alice"
        # A good request's line is written within a tenth of a second.
        time.sleep(0.5)
        renewed = [event["status"] for event in place.events() if event.get("path", "").endswith("/v1/token")]
        assert renewed and set(renewed) == {200}, "the token was not renewed"
        refused = alice.run("request", "-d", "x=1", "/write")
        assert refused.returncode == 1 and json.loads(refused.out)["update_url"] == URL
        assert alice.run("logout").returncode == 0
        again = alice.run("login", "--account", "alice", "--password-stdin", stdin=PASSWORD)
        assert again.returncode == 1 and "update-required" in again.err and URL in again.err


def test_a_session_has_a_place_of_its_own(tmp_path):
    """By shares, sessions of one address are told apart: some are reached by 50 %, and those stay reached."""
    with Gateway(tmp_path / "gateway") as place:
        place.add_app("demo", registration="open", slots="unlimited")
        first = Person(place, tmp_path / "p0", "alice").signs_up().logs_in()
        people = [first] + [Person(place, tmp_path / f"p{n}", "alice", release=first.release).logs_in() for n in range(1, 12)]

        def reached(percent: int) -> list[bool]:
            place.admin("release", "retire", first.release["key_id"], "--at", "now", "--update-url", URL, "--percent", percent)
            return [person.run("request", "/x").returncode == 1 for person in people]

        half, most = reached(50), reached(90)
        # Twelve on one side of a fair coin is one time in two thousand.
        assert True in half and False in half
        assert all(later for earlier, later in zip(half, most) if earlier)
        assert reached(100) == [True] * len(people)
