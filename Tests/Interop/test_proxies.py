"""Behind a proxy: the caller that limits count and that the log names."""

import json

import pytest

from backend import Backend
from bearer import DEVICE, PREFIX, asked
from gateway import Gateway


def guess(gateway: Gateway, name: str, forwarded: str) -> bytes:
    """A wrong password, as a proxy passes it on."""
    body = json.dumps({"account": name, "password": "wrong", "device": DEVICE}).encode()
    request = gateway.key.request("POST", f"{PREFIX}/login/password", body, fields=[("content-type", "application/json")])
    return request.replace(b"\r\n", f"\r\nX-Forwarded-For: {forwarded}\r\n".encode(), 1)


@pytest.mark.parametrize("trusted", [True, False])
def test_limits_count_the_client_behind_a_trusted_proxy(tmp_path, trusted):
    options = ("--trusted-proxies", "127.0.0.0/8,10.0.0.0/8") if trusted else ()
    with Gateway(tmp_path, "--login-address", "3/3600s", *options) as gateway:
        gateway.add_app("demo", password_login="on")
        gateway.key = gateway.add_release()
        with gateway.connect() as connection:
            said = [asked(connection, guess(gateway, f"a{n}", f"203.0.113.1, 198.51.100.{n}, 10.0.0.9"))[0] for n in range(3)]
            assert said == ["wrong-credentials"] * 3
            # Entries to the left of those that the proxies wrote come from the client and cannot be
            # trusted.
            again, _ = asked(connection, guess(gateway, "b", "203.0.113.1, 198.51.100.7, 10.0.0.9"))
            assert again == ("wrong-credentials" if trusted else "too-many-attempts")
            told = [asked(connection, guess(gateway, f"c{n}", f"198.51.100.{n}, 203.0.113.50"))[0] for n in range(4)]
            assert told == (["wrong-credentials"] * 3 if trusted else ["too-many-attempts"] * 3) + ["too-many-attempts"]
        gateway.stop()
        named = {event.get("client") for event in gateway.events() if event.get("path", "").endswith("/login/password")}
        assert named == ({"198.51.100.0", "198.51.100.1", "198.51.100.2", "198.51.100.7", "203.0.113.50"} if trusted else {None})


@pytest.mark.parametrize("forwarded,client", [
    # U+0600 is one character with the comma behind it, which the proxy wrote.
    ("10.9.9.9\u0600, 203.0.113.5", "203.0.113.5"),
    # The proxy's own entry is malformed: the request has no client address, and does not count to the
    # proxy.
    ("203.0.113.5, unix:", "unknown"),
], ids=["address", "no-address"])
def test_no_client_becomes_the_proxy(tmp_path, forwarded, client):
    with Backend() as backend, Gateway(tmp_path, "--tls", "off", "--upstream", backend.url,
                                       "--trusted-proxies", "127.0.0.1,10.0.0.0/8") as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        request = key.request().replace(b"\r\n", f"\r\nX-Forwarded-For: {forwarded}\r\n".encode(), 1)
        assert gateway.send(request).status == 200
        seen = backend.wait(1)[0]
        assert seen.get("countersign-client") == seen.get("x-forwarded-for") == client
        gateway.stop()
        assert [event["client"] for event in gateway.events() if event.get("status") == 200] == [client]


def test_what_cannot_be_read_is_not_the_next_one_s(tmp_path):
    """A refused head on a proxy's connection names no client; the client of the previous request is not
    used for it."""
    with Gateway(tmp_path, "--tls", "off", "--trusted-proxies", "127.0.0.1") as gateway:
        gateway.add_app("demo")
        key = gateway.add_release()
        with gateway.connect() as connection:
            connection.send(key.request().replace(b"\r\n", b"\r\nX-Forwarded-For: 203.0.113.5\r\n", 1))
            assert connection.answer().status == 200
            connection.send(b"GET / HTTP/1.1\r\nHost\r\n\r\n")
            assert connection.answer().status == 400
        gateway.stop()
        assert [event.get("client") for event in gateway.events() if "status" in event] == ["203.0.113.5", None]
