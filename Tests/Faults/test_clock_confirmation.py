"""A server that ran while the clock was far ahead refuses everything once the clock is right. An administrator's confirmation ends
that within minutes; what was admitted by the wrong clock stays refused when real time comes there; and a confirmation works on a
running server and on a stopped one, is recorded, and is asked for by name in the log."""

import json

import pytest

from clock import Clock
from gateway import Gateway, run
from waiting import until

YEAR = 365 * 86_400


class Place:
    def __init__(self, folder):
        self.clock = Clock(folder)
        self.gateway = Gateway(folder / "gateway", environment=self.clock.environment)

    def code(self, request: bytes) -> str:
        answer = self.gateway.send(request)
        return "accepted" if answer.status == 200 else json.loads(answer.body)["code"]

    def request(self) -> bytes:
        return self.gateway.key.request("POST", "/pay", b"amount=1", created=self.clock.now)

    def status(self) -> dict:
        return json.loads(self.gateway.admin("replay", "status", "--json").out)

    def becomes(self, code: str) -> None:
        """The main thread follows the clock every two seconds."""
        until(lambda: self.clock.advance(0.2) or self.code(self.request()) == code, lambda: f"not {code}")

    def boots(self) -> None:
        """As if the machine had been restarted: the file bears the id of another boot."""
        with open(self.gateway.data / "replay", "r+b") as file:
            file.seek(104)
            file.write(b"a" * 36)


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    place.gateway.start()
    place.gateway.add_app("demo")
    place.gateway.key = place.gateway.add_release()
    assert place.code(place.request()) == "accepted"
    # The clock is a year ahead when the machine comes up, and stays so until a request was admitted.
    assert place.gateway.stop() == 0
    place.boots()
    place.clock.jumps(YEAR)
    place.gateway.start()
    assert place.code(place.request()) == "unavailable", "the floor is not above the first requests"
    place.clock.jumps(YEAR + 600)
    place.becomes("accepted")
    yield place
    if place.gateway.process.poll() is None:
        assert place.gateway.stop() == 0


@pytest.mark.parametrize("runs", [True, False])
def test_a_confirmation_ends_it_and_nothing_comes_back(place, runs):
    wrong = place.request()
    assert place.code(wrong) == "accepted"
    place.clock.jumps(0)
    assert place.code(place.request()) == "unavailable"
    until(lambda: "confirm-clock" in place.gateway.log_path.read_text(), "the log does not name the command")
    status = place.status()
    assert status["is_far_ahead"] and status["floor_ahead"] > YEAR / 2
    if not runs:
        assert place.gateway.stop() == 0
    before = run("replay", "confirm-clock", "--data", place.gateway.data, environment=place.gateway.environment)
    assert before.returncode == 2 and "--yes" in before.err
    assert place.status()["floor"] == status["floor"], "without --yes nothing changes"
    confirmed = json.loads(place.gateway.admin("replay", "confirm-clock", "--yes", "--json").out)
    assert confirmed["confirmations"] == 1 and 0 < confirmed["floor_ahead"] <= 600
    assert any(first <= place.clock.now + YEAR + 600 <= last for first, last in confirmed["refused"])
    records = place.gateway.admin("audit", "list", "--json").out
    assert "replay.confirm-clock" in records
    if not runs:
        place.gateway.start()
    assert place.code(place.request()) == "unavailable", "what was admitted before the clock went wrong may have been dropped"
    place.clock.jumps(confirmed["floor_ahead"] + 60)
    place.becomes("accepted")
    # Real time comes to where the clock was.
    place.clock.jumps(YEAR + 600)
    assert place.code(wrong) == "unavailable", "a request of the wrong clock was accepted again"
    assert place.code(place.request()) == "unavailable"
    # And passes it. The interval is no longer than the clock was wrong, and some minutes.
    [(first, last)] = [pair for pair in confirmed["refused"] if pair[0] <= place.clock.now <= pair[1]]
    assert last - first < 3_600
    place.clock.jumps(YEAR + 600 + last - place.clock.now + 10)
    place.becomes("accepted")


def test_it_holds_after_the_next_boot_and_without_the_file(place):
    place.clock.jumps(0)
    place.gateway.admin("replay", "confirm-clock", "--yes")
    assert place.gateway.stop() == 0
    place.boots()
    place.gateway.start()
    assert place.status()["floor_ahead"] <= 600, "the next boot raised the floor over what is refused"
    assert place.gateway.stop() == 0
    refused = place.status()["refused"]
    (place.gateway.data / "replay").unlink()
    place.gateway.start()
    assert place.status()["refused"] == refused, "with the file gone, the intervals are gone"
