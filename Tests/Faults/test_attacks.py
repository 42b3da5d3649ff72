"""Strangers attack the server from one address, or many, as fast as they can, and an ordinary client at another
address is served all the while: the short form of script/fairness. Each test asserts that its attack ran, that no
signed request failed, that the administrators' listener answered, that memory and the log stayed bounded, and that
SIGTERM ends the server while the attack goes on.

Times are bounded generously, since other tests run on the same cores, and looked at three times before they count;
script/fairness has the strict limits, with cores of their own."""

import pytest

from attacked import AttackedGateway, Places, failures, measure
from attackers import Attack, build_tools
from attacks import ATTACKS
from gateway import BINARY

pytestmark = pytest.mark.full

SECONDS = 2
# Milliseconds; a debug build is slower by an order of magnitude.
SLOWER = 10 if "/debug/" in BINARY else 1
MOST_MEDIAN, MOST_P99 = 200 * SLOWER, 1000 * SLOWER
# The tests beside this one should get on, too.
PLACES = Places(attackers=("nice", "-n", "5"))
# Over TLS too where TLS changes what the attack meets; script/fairness has all of them both ways.
BOTH_WAYS = {"pipeline", "pipeline-many", "pipeline-unread", "bodies", "idle", "connections", "mixed"}
CASES = [
    (attack, transport)
    for attack in ATTACKS
    for transport in attack.transports
    if transport == attack.transports[0] or attack.name in BOTH_WAYS
]


@pytest.fixture(scope="module", autouse=True)
def tools():
    build_tools()


@pytest.mark.parametrize("attack,transport", CASES, ids=[f"{attack.name}-{transport}" for attack, transport in CASES])
def test_an_ordinary_client_is_served_while(attack: Attack, transport: str, tmp_path, note):
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        with AttackedGateway(folder, attack, transport == "tls") as gateway:
            row = measure(attack, gateway, SECONDS, folder, PLACES)
        assert not failures(row, attack), row
        median, p99, health = row["gateway"]["p50"], row["gateway"]["p99"], row["admin"]["p99"]
        if median <= MOST_MEDIAN and p99 <= MOST_P99 and health <= MOST_P99:
            note(f"{attack.name}, {transport}: median {median:.1f} ms, 99 % {p99:.1f} ms, /health {health:.1f} ms")
            return
    raise AssertionError(f"median {median:.1f} ms, p99 {p99:.1f} ms, /health {health:.1f} ms: {row}")
