"""The command line's messages about mistyped or confused arguments are correct and complete."""

import json
import re
import time

import pytest

from gateway import Gateway, run
from person import Person

TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
OTHER_TIMES = re.compile(r"\b1[789]\d{8}\b|\d\d:\d\d(:\d\d)? UTC|\d{4}-\d\d-\d\d[ -]\d")
URL = "https://example.com/update"


@pytest.fixture
def data(tmp_path):
    """A data folder without a server."""
    folder = tmp_path / "data"
    assert run("app", "add", "shop", "--data", folder).returncode == 0
    return folder


def add(data, *more, platform="ios", version="1.0"):
    return run("release", "add", "shop", "--platform", platform, "--version", version, "--json", *more, "--data", data)


def setting(data, name: str) -> str:
    rows = json.loads(run("app", "policy", "shop", "--json", "--data", data).out)["policy"]
    return next(row["value"] for row in rows if row["key"] == name)


# Policy

def test_one_wrong_setting_leaves_all_as_they_were(data):
    wrong, named = "timezone=Berlin", "timezone"
    for order in (["schemes=form-md5", wrong], [wrong, "schemes=form-md5"]):
        words = [word for text in order for word in ("--set", text)]
        done = run("app", "policy", "shop", *words, "--data", data)
        assert (done.returncode, done.out) == (2, "")
        assert named in done.err and "nothing was changed: none of the 2 settings" in done.err
        assert setting(data, "schemes") == "message-signatures"
    alone = run("app", "policy", "shop", "--set", wrong, "--data", data)
    assert alone.returncode == 2 and "nothing was changed" in alone.err


def test_a_secret_setting_is_not_told(data):
    done = run("app", "policy", "shop", "--set", "debug=on", "--set", "legacy-key=" + "very-secret" * 30, "--data", data)
    assert done.returncode == 2 and "legacy-key" in done.err and "nothing was changed" in done.err
    assert "very-secret" not in done.err


def test_the_same_for_a_release(data):
    key_id = json.loads(add(data).out)["key_id"]
    done = run("release", "policy", key_id, "--set", "debug=on", "--set", "slots=single", "--data", data)
    assert done.returncode == 2 and "slots" in done.err and "nothing was changed" in done.err
    rows = json.loads(run("release", "policy", key_id, "--json", "--data", data).out)["policy"]
    assert next(row["from"] for row in rows if row["key"] == "debug") == "default"


# Releases

def test_a_release_names_what_is_in_its_way(data):
    first = json.loads(add(data, "--key-id", "first-key", "--secret", "s" * 43).out)["key_id"]
    same = add(data, "--key-id", "second-key", "--secret", "t" * 43)
    assert same.returncode == 1
    assert first in same.err and "1.0" in same.err and "release rotate" in same.err
    assert "is taken" not in same.err
    taken = add(data, "--key-id", first, "--secret", "t" * 43, version="2.0")
    assert taken.returncode == 1
    assert f"key id {first} is taken" in taken.err and "1.0" in taken.err and "rotate" not in taken.err
    add(data, "--key-id", "other-key", "--secret", "u" * 43, version="3.0")
    both = add(data, "--key-id", first, "--secret", "t" * 43, version="3.0")
    assert both.returncode == 1 and "is taken" in both.err and "other-key" in both.err


# Commands

def test_a_mistyped_command_is_suggested_whole():
    done = run("release", "retier", "x")
    assert (done.returncode, done.out) == (2, "") and "did you mean `release retire`?" in done.err


# Times

def test_times_are_taken_in_every_form(data):
    key_id = json.loads(add(data).out)["key_id"]
    for text, expected in (("2027-11-29T12:00:00+08:00", 1827460800), ("+7d", time.time() + 7 * 86400)):
        done = run("release", "retire", key_id, "--at", text, "--update-url", URL, "--json", "--data", data)
        assert done.returncode == 0 and abs(json.loads(done.out)["retired_at"] - expected) < 60, done.err
    done = run("release", "retire", key_id, "--at", "tomorrow", "--update-url", URL, "--data", data)
    assert done.returncode == 2 and "+7d" in done.err and "2026-11-29" in done.err, done.err


def test_signing_takes_them_too():
    plain = b"GET / HTTP/1.1\r\nHost: api.example\r\n\r\n"
    key = ("--key-id", "r_1", "--secret", "text:" + "k" * 32)
    made = run("sign", *key, "--at", "2027-11-29", stdin=plain)
    assert made.returncode == 0 and "created=1827446400" in made.out
    for at in "2027-11-29T00:00:30Z", "1827446400", "2027-11-29T08:00:10+08:00":
        assert run("verify", *key, "--at", at, stdin=made.stdout).out == "accepted\n"
    assert run("verify", *key, "--at", "2027-11-30", stdin=made.stdout).out == "stale\n"
    assert "created=" + str(int(time.time()) + 86400)[:7] in run("sign", *key, "--at", "+1d", stdin=plain).out


def test_printed_times_are_taken_back(data):
    """One format everywhere, which `--at` reads."""
    key_id = json.loads(add(data).out)["key_id"]
    done = run("release", "retire", key_id, "--at", "+30d", "--warn-at", "+7d", "--read-only-at", "+20d",
               "--percent", "10@+8d,100@+9d", "--update-url", URL, "--data", data)
    assert len(TIME.findall(done.out)) == 5, done.out
    texts = [done.out]
    for command in (("release", "list", "shop"), ("release", "impact", key_id), ("audit", "list"), ("meter",),
                    ("account", "list", "shop")):
        texts.append(run(*command, "--data", data).out)
    for text in texts:
        assert not OTHER_TIMES.search(text), text
    assert TIME.search(texts[1]) and TIME.search(texts[3])
    again = run("release", "retire", key_id, "--at", TIME.findall(done.out)[0], "--update-url", URL, "--data", data)
    assert again.returncode == 0


# Offline verdicts

def test_platform_version_and_zone_are_given_as_to_a_profile():
    key = ("--scheme", "form-md5", "--key-id", "app-1", "--secret", "k" * 16)
    plain = b"POST / HTTP/1.1\r\nHost: api.example\r\nContent-Length: 3\r\n\r\na=1"
    right = ("--platform", "ios", "--version", "2.0", "--timezone", "+08:00")
    made = run("sign", *key, *right, "--at", "2027-11-29T00:00:00Z", stdin=plain)
    assert made.returncode == 0, made.err
    assert "timestamp=2027-11-29-08%3A00%3A00" in made.out
    at = ("--at", "2027-11-29")
    for command in "verify", "explain":
        assert run(command, *key, *right, *at, stdin=made.stdout).returncode == 0
        wrong = run(command, *key, *right, "--version", "3.0", *at, stdin=made.stdout)
        assert wrong.returncode == 1 and "ver" in wrong.out + wrong.err
        wrong = run(command, *key, *right, "--platform", "android", *at, stdin=made.stdout)
        assert wrong.returncode == 1 and "plat" in wrong.out + wrong.err
        wrong = run(command, *key, *right, "--timezone", "+09:00", *at, stdin=made.stdout)
        assert wrong.returncode == 1 and "stale" in wrong.out
        wrong = run(command, *key, "--timezone", "Berlin", *at, stdin=made.stdout)
        assert wrong.returncode == 2 and "timezone" in wrong.err


# Sessions that have ended

@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("ended")) as running:
        running.add_app("demo", registration="open")
        yield running


def test_a_call_after_the_session_says_in_whose_name_it_is(served, tmp_path):
    person = Person(served, tmp_path / "alice", "alice")
    fresh = person.run("request", "/hello")
    assert fresh.returncode == 0 and "session" not in fresh.err, "nobody was ever signed in: nothing to say"
    person.signs_up().logs_in()
    assert person.run("request", "--require-session", "/hello").returncode == 0
    served.admin("session", "revoke", person.status()["session"])
    # The first call learns of it from the server, and has no account.
    assert person.run("request", "/hello").returncode == 1

    noted = person.run("request", "/hello")
    assert noted.returncode == 0
    for words in "the session has ended", "app version alone", "countersign login":
        assert words in noted.err
    assert "countersign-account" not in json.loads(noted.out)["headers"]
    asked = person.run("request", "--as-release", "/hello")
    assert asked.returncode == 0 and "the session has ended" not in asked.err
    before = len(served.events())
    for more in (), ("--dry-run",):
        failed = person.run("request", "--require-session", *more, "/required")
        assert (failed.returncode, failed.out) == (1, "")
        assert "the session has ended" in failed.err and "nothing was sent" in failed.err
    assert not any(event.get("path") == "/required" for event in served.events()[before:])
    both = person.run("request", "--require-session", "--as-release", "/hello")
    assert both.returncode == 2
    person.logs_in()
    assert person.run("request", "--require-session", "/hello").returncode == 0


def test_a_session_is_required_where_there_never_was_one(served, tmp_path):
    failed = Person(served, tmp_path / "bob", "bob").run("request", "--require-session", "/hello")
    assert failed.returncode == 1 and "no account is signed in" in failed.err


@pytest.mark.parametrize("name", ["--help", "-", ".", "..", "-a", ".a"])
def test_an_app_is_not_named_like_an_option_or_a_folder(tmp_path, name):
    data = tmp_path / "data"
    assert run("app", "add", "demo", "--data", data).returncode == 0
    done = run("app", "add", "--data", data, "--", name)
    assert done.returncode == 2 and "expected a name that begins with a letter or a digit" in done.err, done.err
    assert run("app", "add", "--data", data, "--", f"a{name}").returncode == 0
