"""Releases that share a secret: a request is accepted once in all of them, and adding such a secret gives a
warning."""

import json

import pytest

from gateway import Gateway, run

SECRET = "the secret that all versions share"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("shared"), "--tls", "off") as running:
        running.add_app("demo", schemes="message-signatures,sigv4,auth-v1")
        yield running


def add(gateway: Gateway, key_id: str, version: str, scheme: str, secret: str = SECRET):
    return gateway.admin("release", "add", "demo", "--platform", "ios", "--version", version, "--scheme", scheme,
                         "--key-id", key_id, "--secret-stdin", "--json", stdin=secret)


@pytest.mark.parametrize("scheme", ["sigv4", "auth-v1"])
def test_a_request_is_accepted_once_in_all(gateway, scheme):
    ids = [f"{scheme}-one", f"{scheme}-two"]
    for number, key_id in enumerate(ids):
        add(gateway, key_id, f"1.{number}", scheme)
    raw = f"POST /pay HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\n\r\n"
    signed = run("sign", "--scheme", scheme, "--key-id", ids[0], stdin=raw, environment={"COUNTERSIGN_SECRET": SECRET}).stdout
    swapped = signed.replace(ids[0].encode(), ids[1].encode())
    assert swapped != signed
    assert gateway.send(signed).status == 200
    for copy in (signed, swapped):
        # auth-v1 signs the key id: its copy is no copy.
        said = json.loads(gateway.send(copy).body)["code"]
        assert said == ("bad-signature" if scheme == "auth-v1" and copy is swapped else "replayed")
    # Also after a crash, and in the other order.
    gateway.stop(9)
    gateway.start()
    assert json.loads(gateway.send(signed).body)["code"] == "replayed"
    if scheme == "sigv4":
        assert json.loads(gateway.send(swapped).body)["code"] == "replayed"


def test_a_shared_secret_is_warned_of(gateway):
    first = add(gateway, "warned-1", "2.0", "sigv4", "another secret, of thirty bytes")
    assert "warnings" not in json.loads(first.out) and "warning" not in first.err
    second = add(gateway, "warned-2", "2.1", "sigv4", "another secret, of thirty bytes")
    [warning] = json.loads(second.out)["warnings"]
    assert "warned-1" in warning and f"warning: {warning}" in second.err
    assert "another secret" not in second.err + warning
    # Also under another scheme and as a next key; a separate secret is shared with no release.
    third = add(gateway, "warned-3", "2.2", "message-signatures", "another secret, of thirty bytes")
    [warning] = json.loads(third.out)["warnings"]
    assert "warned-1" in warning and "warned-2" in warning
    rotated = gateway.admin("release", "rotate", "warned-1", "--secret-stdin", "--json", stdin="a secret of its own, truly")
    assert "warnings" not in json.loads(rotated.out)
    fourth = add(gateway, "warned-4", "2.3", "sigv4", "a secret of its own, truly")
    assert "warned-1" in json.loads(fourth.out)["warnings"][0]
