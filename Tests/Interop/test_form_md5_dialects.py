"""form-md5 as teams write it in two ways: the private key among the parameters, or behind the last one."""

import hashlib
import json
import secrets
import time
import urllib.parse

import pytest

from gateway import Gateway, run

APP_ID, PRIVATE_KEY = "AppendedApp00001", "hUe7cXs2Rb9yKfJ4"
PAIR_ID, PAIR_KEY = "PairApp000000001", "k3Yf8Qe1Wd6Tz0Lm"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("dialects")) as running:
        running.add_app("old", schemes="form-md5", form_md5_key="appended", debug="on")
        for key_id, secret, version in (APP_ID, PRIVATE_KEY, "2.0"), (PAIR_ID, PAIR_KEY, "1.0"):
            running.admin("release", "add", "old", "--platform", "ios", "--version", version, "--scheme",
                          "form-md5", "--key-id", key_id, "--secret", secret)
        running.admin("release", "policy", PAIR_ID, "--set", "form-md5-key=pair")
        yield running


def base(app_id: str, version: str) -> dict[str, str]:
    return {"app_id": app_id, "plat": "ios", "ver": version, "rand": secrets.token_hex(8),
            "timestamp": time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime()), "zip": "50667", "name": "Jo Ann"}


def appended(parameters: dict[str, str], key: str) -> dict[str, str]:
    text = "&".join(f"{name}={value}" for name, value in sorted(parameters.items())) + key
    return parameters | {"sign": hashlib.md5(text.encode()).hexdigest()}


def paired(parameters: dict[str, str], key: str) -> dict[str, str]:
    text = "&".join(f"{name}={value}" for name, value in sorted((parameters | {"private_key": key}).items()))
    return parameters | {"sign": hashlib.md5(text.encode()).hexdigest()}


def message(host: str, form: dict[str, str], method: str = "POST") -> bytes:
    text = urllib.parse.urlencode(form)
    if method == "GET":
        return f"GET /api?{text} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    return (f"POST /api HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            f"Content-Length: {len(text)}\r\n\r\n{text}").encode()


def error(gateway: Gateway, form: dict[str, str], method: str = "POST") -> dict | None:
    answer = gateway.send(message(f"127.0.0.1:{gateway.port}", form, method))
    assert answer.status == 200
    return json.loads(answer.body).get("err")


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_each_release_signs_in_its_own_way(gateway, method):
    assert error(gateway, appended(base(APP_ID, "2.0"), PRIVATE_KEY), method) is None
    assert error(gateway, paired(base(PAIR_ID, "1.0"), PAIR_KEY), method) is None


def test_the_other_way_is_refused_and_named(gateway):
    for err in (error(gateway, paired(base(APP_ID, "2.0"), PRIVATE_KEY)),
                error(gateway, appended(base(PAIR_ID, "1.0"), PAIR_KEY))):
        assert err["code"] == -3
        assert "key-place" in err["msg"] and "form-md5-key=" in err["msg"]
        assert PRIVATE_KEY not in err["msg"] and PAIR_KEY not in err["msg"]


def test_what_is_altered_is_refused_under_both(gateway):
    for form in appended(base(APP_ID, "2.0"), PRIVATE_KEY), paired(base(PAIR_ID, "1.0"), PAIR_KEY):
        assert error(gateway, form | {"zip": "1"})["code"] == -3
        assert error(gateway, form | {"more": "1"})["code"] == -3
    sent = appended(base(APP_ID, "2.0"), PRIVATE_KEY) | {"private_key": PRIVATE_KEY}
    assert error(gateway, sent)["code"] == -1


@pytest.mark.parametrize("place", ["pair", "appended"])
def test_the_commands_know_both(place):
    make = appended if place == "appended" else paired
    key = ("--scheme", "form-md5", "--key-id", APP_ID, "--secret", PRIVATE_KEY)
    policy = ("--policy", f"form-md5-key={place}")
    request = message("api.example", make(base(APP_ID, "2.0"), PRIVATE_KEY))
    assert run("verify", *key, *policy, stdin=request).out == "accepted\n"
    other = "pair" if place == "appended" else "appended"
    done = run("explain", *key, "--policy", f"form-md5-key={other}", "--json", stdin=request)
    assert done.returncode == 1
    cause = json.loads(done.out)["cause"]
    assert cause["code"] == "key-place" and f"form-md5-key={place}" in cause["remedy"]
    assert PRIVATE_KEY not in done.out

    plain = b"POST /api HTTP/1.1\r\nHost: api.example\r\nContent-Length: 3\r\n\r\nb=1"
    signed = run("sign", *key, *policy, "--platform", "ios", "--version", "2.0", stdin=plain)
    assert signed.returncode == 0, signed.err
    form = dict(urllib.parse.parse_qsl(signed.out.split("\r\n\r\n")[1]))
    sign = form.pop("sign")
    assert make(form, PRIVATE_KEY)["sign"] == sign


def test_the_string_to_sign_hides_the_key(tmp_path):
    form = base(APP_ID, "2.0")
    request = message("api.example", appended(form, PRIVATE_KEY))
    text = tmp_path / "signed"
    text.write_text("&".join(f"{name}={value}" for name, value in sorted(form.items())) + PRIVATE_KEY)
    done = run("explain", "--scheme", "form-md5", "--key-id", APP_ID, "--secret", PRIVATE_KEY, "--policy",
               "form-md5-key=appended", "--signed", text, "--json", stdin=request)
    assert done.returncode == 0, done.err
    stages = {stage["name"]: stage["text"] for stage in json.loads(done.out)["stages"]}
    assert stages["string to sign"].endswith("&zip=50667<secret>")
    assert json.loads(done.out)["differs"] is None
    assert PRIVATE_KEY not in done.out


@pytest.mark.parametrize("place", ["pair", "appended"])
def test_the_client_calls_in_both_ways(gateway, tmp_path, place):
    keys = {"appended": (APP_ID, PRIVATE_KEY, "2.0"), "pair": (PAIR_ID, PAIR_KEY, "1.0")}
    key_id, secret, version = keys[place]
    profile = tmp_path / "profile"
    done = run("profile", "add", profile, "--url", gateway.url, "--ca", gateway.data / "tls/certificate.pem",
               "--key-id", key_id, "--secret-stdin", "--scheme", "form-md5", "--platform", "ios", "--version", version,
               "--form-md5-key", place, stdin=secret)
    assert done.returncode == 0, done.err
    assert run("request", "--profile", profile, "-d", "a=1", "/api").returncode == 0
    assert run("request", "--profile", profile, "/api?a=1").returncode == 0
    other = "pair" if place == "appended" else "appended"
    done = run("request", "--profile", profile, "--form-md5-key", other, "-d", "a=1", "/api")
    assert done.returncode == 1 and "key-place" in done.out


def test_the_policy_takes_two_words(gateway):
    done = run("app", "policy", "old", "--set", "form-md5-key=prefix", "--data", gateway.data)
    assert done.returncode == 2 and "expected pair or appended" in done.err
