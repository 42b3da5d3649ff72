"""No caller exhausts the Idempotency-Keys of others: a caller that takes all it can, with the keys of many
releases and many accounts, leaves room for accounts and networks that have few; and when the store is full,
the oldest finished keys of the owner with the most are evicted."""

import json

import pytest

import bearer
from backend import Backend
from gateway import Gateway
from wire import Connection

# A thousandth of the defaults.
SMALL = ("--limit-kept-keys", 1_000, "--limit-kept-account-keys", 10, "--limit-kept-few-keys", 1)
STRANGER, OTHER = "127.0.0.2", "127.0.0.3"


class Shop:
    """A gateway whose accounts `user-0` and on send keyed requests, and callers without a session from some address."""

    def __init__(self, gateway: Gateway, accounts: int):
        self.gateway, self.count = gateway, 0
        bearer.add_app(gateway, accounts)
        self.keys = [gateway.key] + [gateway.add_release(version=f"1.{number}") for number in range(1, 5)]
        self.connections = {}

    def ask(self, request: bytes, source: str):
        if source not in self.connections:
            self.connections[source] = Connection(self.gateway.port, self.gateway.context, source=source)
        self.connections[source].send(request)
        return self.connections[source].answer()

    def token(self, number: int) -> str:
        return json.loads(self.ask(bearer.login(self.gateway, f"user-{number}"), "127.0.0.1").body)["token"]

    def pay(self, source: str, token: str | None = None, release: int = 0, name: str | None = None) -> int:
        self.count += 1
        fields = [("idempotency-key", name or f"k-{self.count}")]
        fields += [("authorization", f"Bearer {token}")] if token else []
        return self.ask(self.keys[release].request("POST", "/pay", b"x", fields=fields), source).status


@pytest.fixture
def shop(tmp_path, request):
    accounts, options = request.param
    with Backend() as backend, Gateway(tmp_path, "--upstream", backend.url, "--login-address", "1000/1s", *options) as gateway:
        made = Shop(gateway, accounts)
        yield made
        for connection in made.connections.values():
            connection.sock.close()


@pytest.mark.parametrize("shop", [(11, SMALL)], indirect=True)
def test_an_attacker_with_five_releases_and_ten_accounts_leaves_room(shop):
    honest = shop.token(10)
    assert shop.pay(OTHER, honest) == 200
    taken = [shop.pay(STRANGER, release=release) for release in range(5) for _ in range(200)]
    # All that nobody else asks for, but for an eighth.
    assert taken.count(200) == 874 and taken.count(503) == 126
    assert shop.pay(OTHER) == 200, "another address of the same release finds room"
    for number in range(10):
        token = shop.token(number)
        assert {shop.pay(STRANGER, token) for _ in range(10)} <= {200, 503}
    assert [shop.pay(OTHER, honest) for _ in range(3)] == [200] * 3
