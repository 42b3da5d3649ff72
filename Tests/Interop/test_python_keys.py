"""The client in Examples/python sends a request with an idempotency key again only as long as the server recognizes the
key: for the time that `Idempotency-Keys-Kept` has stated, or 600 s, by any of its clocks. After that the outcome is unknown."""

import json
import pathlib
import sys

import pytest

from products import ROOT

sys.path.insert(0, str(ROOT / "Examples/python"))
from countersign_client import keylife, transport  # noqa: E402
from countersign_client.client import Client  # noqa: E402
from countersign_client.errors import ClientError  # noqa: E402
from countersign_client.setup import Setup  # noqa: E402
from countersign_client.signatures import Answer, Request  # noqa: E402

REAL = transport.exchange


class Network:
    """Passes requests on to the gateway, and loses the responses that it is told to lose. Time passes only in it."""

    def __init__(self):
        self.now, self.sent, self.lost, self.seconds, self.stated = [1_000.0, 5.0], [], 0, (0.0, 0.0), None

    def exchange(self, request: Request, setup: Setup) -> Answer:
        self.sent.append(request)
        answer = REAL(request, setup)
        if self.lost:
            self.lost -= 1
            self.now = [now + passed for now, passed in zip(self.now, self.seconds, strict=True)]
            raise ClientError("network", "lost")
        if self.stated is not None:
            answer.fields["idempotency-keys-kept"] = self.stated
        return answer


@pytest.fixture
def client(gateway, tmp_path: pathlib.Path, monkeypatch):
    gateway.add_app("demo", require="session", registration="open")
    release = json.loads(gateway.admin("release", "add", "demo", "--platform", "other", "--version", "1.0", "--json").out)
    pin = next(line for line in gateway.started if line.startswith("spki_pin ")).split()[1]
    made = Client(Setup.read({**release, "url": f"https://127.0.0.1:{gateway.port}", "pins": [pin]}), tmp_path / "state.json")
    made.sign_up("alice", "right")
    made.log_in("alice", "right")
    made.network = Network()
    monkeypatch.setattr(transport, "exchange", made.network.exchange)
    monkeypatch.setattr(keylife.SendingTime.__init__, "__defaults__", (lambda: tuple(made.network.now),))
    return made


def lose(client, wall: float, awake: float) -> list[Request]:
    """The copies of a keyed request whose first response is lost after that time."""
    network = client.network
    network.sent, network.lost, network.seconds = [], 1, (wall, awake)
    try:
        assert client.call("POST", "/orders", body=b"{}", once=True).status == 200
    finally:
        keys = {request.fields["idempotency-key"] for request in network.sent}
        assert len(keys) == 1
    return network.sent


@pytest.mark.parametrize(("wall", "awake"), [(600, 0), (0, 600), (-86_400, 600)])
def test_after_the_time_nothing_is_sent_again(client, wall, awake):
    assert client._channel.keys_kept == 600, "nothing was stated before the first keyed request"
    assert len(lose(client, 599, 599)) == 2
    with pytest.raises(ClientError) as found:
        lose(client, wall, awake)
    assert found.value.code == "outcome-unknown" and len(client.network.sent) == 1
    # The next request has a key of its own.
    assert len(lose(client, 1, 1)) == 2


@pytest.mark.parametrize(("stated", "seconds"), [("1200", 1_200), ("599", 600), ("86401", 600), ("x", 600), ("700, 700", 600), ("+700", 600)])
def test_the_server_states_the_time(client, stated, seconds):
    client.network.stated = stated
    client.call("POST", "/orders", body=b"{}", once=True)
    assert client._channel.keys_kept == seconds
    assert len(lose(client, seconds - 1, 0)) == 2
    with pytest.raises(ClientError, match="outcome-unknown"):
        lose(client, seconds, 0)


def test_the_gateway_states_it(client, gateway, tmp_path):
    gateway.stop()
    gateway.start("--limit-kept-floor", "1800")
    client.call("POST", "/orders", body=b"{}", once=True)
    assert client._channel.keys_kept == 1_800
