"""Behind a proxy: whom limits count, and whom the log names."""

import json

import pytest

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
            # What stands to the left of the proxies' own words is the client's, who may write what he likes.
            again, _ = asked(connection, guess(gateway, "b", "203.0.113.1, 198.51.100.7, 10.0.0.9"))
            assert again == ("wrong-credentials" if trusted else "too-many-attempts")
            told = [asked(connection, guess(gateway, f"c{n}", f"198.51.100.{n}, 203.0.113.50"))[0] for n in range(4)]
            assert told == (["wrong-credentials"] * 3 if trusted else ["too-many-attempts"] * 3) + ["too-many-attempts"]
        gateway.stop()
        named = {event.get("client") for event in gateway.events() if event.get("path", "").endswith("/login/password")}
        assert named == ({"198.51.100.0", "198.51.100.1", "198.51.100.2", "198.51.100.7", "203.0.113.50"} if trusted else {None})
