"""What a stranger can make the server compute is bounded by address: refusals are signed up to a budget and go out unsigned
beyond it; connections whose signatures fail are closed beyond another; and signatures of key pairs that do not hold are limited
by the pair of key and address, so that the owner, who calls from elsewhere, is served all the while."""

import json
import time

import pytest

from gateway import Gateway
from signing import PairKey, ReleaseKey
from waiting import until
from wire import Closed, Connection

STRANGER, OTHER = "127.0.0.9", "127.0.0.10"


@pytest.fixture
def plain(tmp_path):
    with Gateway(tmp_path, "--tls", "off") as running:
        running.add_app("demo")
        running.key = running.add_release()
        yield running


def connect(running: Gateway, source: str) -> Connection:
    return Connection(running.port, None, 20, source)


def ask(running: Gateway, source: str, data: bytes):
    with connect(running, source) as connection:
        connection.send(data)
        return connection.answer()


def forged(key: ReleaseKey, path: str = "/other") -> bytes:
    return key.request().replace(b"GET / ", f"GET {path} ".encode(), 1)


def flood(running: Gateway, source: str, data: bytes, is_over):
    """Pipelines copies of a request until an answer says that a budget is used up; that answer and how many came before."""
    count = 0
    for _ in range(100):
        try:
            with connect(running, source) as connection:
                for _ in range(10):
                    connection.send(data * 200)
                    for _ in range(200):
                        answer = connection.answer()
                        if is_over(answer):
                            return answer, count
                        count += 1
        except Closed:
            pass
    pytest.fail(f"{count} requests, and no budget was used up")


def test_refusals_are_signed_up_to_a_budget(plain):
    """Beyond it the same refusal comes, without a signature; another address still has its own signed."""
    data = forged(plain.key)
    assert ask(plain, STRANGER, data).get("signature")
    answer, count = flood(plain, STRANGER, data, lambda answer: answer.get("signature") is None)
    assert (answer.status, json.loads(answer.body)["code"]) == (401, "bad-signature")
    # One was asked for before, and others may have come at the start.
    assert count >= 990, "it should last an honest client's mistakes"
    assert ask(plain, OTHER, data).get("signature")
    assert ask(plain, STRANGER, plain.key.request()).status == 200


def test_a_copy_of_a_good_request_buys_no_more_signatures(plain):
    """Its signature verifies, but its sender may not have made it."""
    data = plain.key.request()
    assert ask(plain, OTHER, data).status == 200
    answer, _ = flood(plain, STRANGER, data, lambda answer: answer.get("signature") is None)
    assert json.loads(answer.body)["code"] == "replayed"


def test_connections_that_fail_to_verify_are_closed_beyond_a_budget(plain):
    data = forged(plain.key)
    answer, _ = flood(plain, STRANGER, data, lambda answer: answer.get("connection") == "close")
    assert json.loads(answer.body)["code"] == "bad-signature"
    with connect(plain, OTHER) as connection:
        for _ in range(3):
            connection.send(data)
            assert connection.answer().get("connection") is None
    assert ask(plain, STRANGER, plain.key.request()).status == 200, "good requests of that address pass"


@pytest.mark.parametrize("algorithm", ["ed25519", "ecdsa-p256-sha256", "rsa-pss-sha512"])
def test_key_pairs_are_limited_by_key_and_address(plain, tmp_path, algorithm):
    pair = PairKey.make(algorithm, "r_none", plain.key.authority)
    (tmp_path / "public.pem").write_bytes(pair.public_pem())
    made = json.loads(plain.admin("release", "add", "demo", "--platform", "web", "--version", "1", "--algorithm", algorithm,
                                  "--public-key", tmp_path / "public.pem", "--json").out)
    pair.key_id = made["key_id"]
    assert ask(plain, STRANGER, pair.request()).status == 200
    codes = []
    for number in range(40):
        answer = ask(plain, STRANGER, forged(pair, f"/{number}"))
        codes.append(json.loads(answer.body)["code"])
        if answer.status == 429:
            assert 1 <= int(answer.get("retry-after")) <= 60
    assert set(codes[:15]) == {"bad-signature"}, "some mistakes are nobody's attack"
    assert codes.count("too-many-attempts") >= 10, codes
    assert ask(plain, OTHER, pair.request()).status == 200, "a stranger must not lock the owner out"
    assert ask(plain, STRANGER, plain.key.request()).status == 200, "nor an address its other keys"


def test_unknown_ids_count_as_one_key(plain):
    """Each looks like an Ed25519 signature of an unknown key: new ids cause no further verifications."""
    codes = []
    for number in range(40):
        pair = PairKey.make("ed25519", f"r_{number}", plain.key.authority)
        codes.append(json.loads(ask(plain, STRANGER, pair.request()).body)["code"])
    assert set(codes[:15]) == {"unknown-key"}
    assert codes.count("too-many-attempts") >= 10, codes
    assert json.loads(ask(plain, OTHER, pair.request()).body)["code"] == "unknown-key"


def test_explanations_have_a_budget(plain):
    """An app in debug mode explains refusals to every caller that names its release: a burst, then a few a
    second."""
    plain.admin("app", "policy", "demo", "--set", "debug=on")
    fields = [(f"x-f{number}", "v " * 60) for number in range(50)]
    data = plain.key.head("GET", "/a/b/c?x=%41&b=2&c=3", fields=fields).replace(b"/a/b/c", b"/a/b/d", 1)
    until(lambda: "explain" in json.loads(ask(plain, OTHER, data).body), "no explanation")
    began, refused = time.monotonic(), []
    for _ in range(100):
        refused.append(json.loads(ask(plain, STRANGER, data).body))
    seconds = time.monotonic() - began
    explained = [problem for problem in refused if "explain" in problem]
    assert 10 <= len(explained) <= 20 + 2 * (int(seconds) + 1), len(explained)
    left = [problem for problem in refused if "explain_omitted" in problem]
    assert len(left) == 100 - len(explained) and all(problem["code"] == "bad-signature" for problem in refused)
    assert all(problem["detail"] for problem in left), "the reason costs nothing"
    assert "explain" in json.loads(ask(plain, OTHER, data).body), "another address has a budget of its own"
