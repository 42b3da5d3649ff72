"""No caller exhausts the Idempotency-Keys of others: a caller that takes all it can, with the keys of many
releases and many accounts, leaves room for accounts and networks that have few; and when the store is full,
the oldest finished keys of the owner with the most are evicted."""

import json
import sqlite3

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

    def book(self, statement: str) -> list[tuple]:
        with sqlite3.connect(self.gateway.data / "countersign.db", timeout=20) as book:
            return book.execute(statement).fetchall()


@pytest.fixture
def shop(tmp_path, request):
    accounts, options = request.param
    # In the database, where the tests change when requests began; the contract of both places is tested in Swift.
    with Backend() as backend, Gateway(tmp_path, "--upstream", backend.url, "--login-address", "1000/1s", "--idempotency", "store",
                                       *options) as gateway:
        made = Shop(gateway, accounts)
        yield made
        for connection in made.connections.values():
            connection.sock.close()


@pytest.mark.parametrize("shop", [(51, SMALL)], indirect=True)
def test_an_attacker_with_five_releases_and_fifty_accounts_leaves_room(shop):
    honest = shop.token(50)
    assert shop.pay(OTHER, honest) == 200
    taken = [shop.pay(STRANGER, release=release) for release in range(5) for _ in range(100)]
    assert taken.count(503) >= 400, "one address has a part of what callers without a session may keep"
    assert shop.pay(OTHER) == 200, "another address of the same release finds room"
    for number in range(50):
        token = shop.token(number)
        assert {shop.pay(STRANGER, token) for _ in range(10)} <= {200, 503}
    assert [shop.pay(OTHER, honest) for _ in range(3)] == [200] * 3


@pytest.mark.parametrize("shop", [(30, ("--limit-kept-keys", 200, "--limit-kept-few-keys", 2))], indirect=True)
def test_accounts_that_take_all_they_can_leave_a_reserve(shop):
    """Each may have a quarter of the free space, and the last eighth is reserved for owners with few
    keys."""
    tokens = [shop.token(number) for number in range(30)]
    for token in tokens[:20]:
        while shop.pay(STRANGER, token) == 200:
            pass
    assert len(shop.book("SELECT 1 FROM idempotent_request")) <= 175 + 2 * 20
    for token in tokens[20:]:
        assert shop.pay(OTHER, token) == 200


@pytest.mark.parametrize("shop", [(12, ("--limit-kept-keys", 100, "--limit-kept-few-keys", 10))], indirect=True)
def test_where_all_is_full_the_oldest_of_whoever_holds_most_give_way(shop):
    tokens = [shop.token(number) for number in range(12)]
    while shop.pay(STRANGER, tokens[0], name=f"first-{shop.count}") == 200:
        pass
    for token in tokens[1:11]:
        while shop.pay(STRANGER, token) == 200:
            pass
    held = shop.book("SELECT scope, count(*) FROM idempotent_request GROUP BY scope ORDER BY 2 DESC")
    assert sum(count for _, count in held) == 100 and held[0][1] > 10, held
    assert shop.pay(OTHER, tokens[11]) == 503, "within the hour nothing is forgotten"
    # One of those two hours ago still runs.
    shop.book("UPDATE idempotent_request SET begun = begun - 7200")
    running = shop.book(f"SELECT min(rowid) FROM idempotent_request WHERE scope = '{held[0][0]}'")[0][0]
    shop.book(f"UPDATE idempotent_request SET status = NULL, fields = NULL, body = NULL WHERE rowid = {running}")
    assert shop.pay(OTHER, tokens[11]) == 200
    left = dict(shop.book("SELECT scope, count(*) FROM idempotent_request GROUP BY scope"))
    assert left[held[0][0]] < held[0][1], "its holder had most"
    assert all(left[scope] == count for scope, count in held[1:]), "nobody else's was touched"
    assert shop.book(f"SELECT 1 FROM idempotent_request WHERE rowid = {running}"), "what runs is never forgotten"
    used = dict(shop.book("SELECT owner, keys FROM idempotent_use"))
    assert used["account"] == sum(left.values()), "the sums follow"
