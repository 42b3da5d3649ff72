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
SMALL = ("--limit-kept-keys", 1_000, "--limit-kept-account-keys", 10, "--limit-kept-few-keys", 5)
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


LARGE = ("--limit-kept-bytes", 1 << 20, "--limit-kept-answer", 20_000)


def test_large_responses_use_up_no_key_and_a_first_response_is_kept(tmp_path):
    def respond(seen, sock):
        length = 18_000 if seen.target == "/large" else 2_000
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length + b"z" * length)

    with Backend(respond) as backend, Gateway(tmp_path, "--upstream", backend.url, *LARGE) as gateway:
        gateway.add_app("shop")
        key = gateway.add_release("shop")

        def ask(source, name, path):
            with Connection(gateway.port, gateway.context, source=source) as connection:
                connection.send(key.request("POST", path, b"x", fields=[("idempotency-key", f'"{name}"')]))
                return connection.answer()

        for number in range(1, 13):
            statuses = [ask(f"127.0.1.{number}", f"{number}-{count}", "/large").status for count in range(6)]
            assert statuses == [200] * 6, "bytes refuse no key"
        dropped = ask("127.0.1.1", "1-again", "/large"), ask("127.0.1.1", "1-again", "/large")
        assert [answer.status for answer in dropped] == [200, 503]
        assert json.loads(dropped[1].body)["done_status"] == 200
        for source in ("127.0.9.1", "127.0.9.2"):
            first, copy = ask(source, source, "/small"), ask(source, source, "/small")
            assert first.status == copy.status == 200 and copy.get("countersign-replayed") == "true"
