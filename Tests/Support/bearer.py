"""Sessions of callers without OPAQUE: the password over TLS, then a token that is sent."""

import json

from gateway import Gateway
from wire import Answer, Connection

PREFIX = "/countersign/v1"
DEVICE = {"class": "desktop", "name": "a test"}


def add_app(gateway: Gateway, accounts: int) -> None:
    """The app `demo`, whose accounts `user-0` and on sign in with a password, on as many devices as they like."""
    gateway.add_app("demo", password_login="on", slots="unlimited")
    gateway.key = gateway.add_release()
    for number in range(accounts):
        name = f"user-{number}"
        gateway.admin("account", "add", "demo", name, "--password-stdin", stdin=f"password of {name}\n")


def login(gateway: Gateway, name: str, **options) -> bytes:
    body = json.dumps({"account": name, "password": f"password of {name}", "device": DEVICE}).encode()
    return gateway.key.request("POST", f"{PREFIX}/login/password", body, fields=[("content-type", "application/json")],
                               **options)


def bearing(gateway: Gateway, token: str, method: str = "GET", path: str = "/session") -> bytes:
    return gateway.key.request(method, PREFIX + path, fields=[("authorization", f"Bearer {token}")])


def asked(connection: Connection, request: bytes) -> tuple[str, Answer]:
    """The result of the request: `accepted`, or the refusal's code."""
    connection.send(request)
    answer = connection.answer()
    return "accepted" if answer.status == 200 else json.loads(answer.body)["code"], answer
