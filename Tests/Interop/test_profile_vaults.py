"""Where a profile keeps its session: in a sealed file with its key beside it, or under a passphrase, with the real server."""

import json
import pathlib
import subprocess

import pytest

import processes
from gateway import BINARY, Gateway, run
from person import PASSWORD, Person

PASSPHRASE = ("env", "COUNTERSIGN_VAULT_PASSPHRASE=a passphrase")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("vaults")) as gateway:
        gateway.add_app("demo", registration="open")
        yield gateway


def put(person: Person, *kind: str) -> subprocess.CompletedProcess:
    """Adds the profile again, with its vault elsewhere."""
    return run("profile", "add", person.profile, "--url", person.gateway.url, "--key-id", person.release["key_id"],
               "--secret-stdin", "--authority-key", person.release["authority_key"],
               "--ca", person.gateway.data / "tls/certificate.pem", *kind, stdin=person.release["secret"], prefix=person.prefix)


def person(served, folder: pathlib.Path, name: str, kind: str, prefix: tuple[str, ...]) -> Person:
    made = Person(served, folder / name, name)
    made.prefix = prefix
    done = put(made, "--vault", kind)
    assert done.returncode == 0, done.err
    return made


def files(person: Person) -> bytes:
    return b"".join(path.read_bytes() for path in pathlib.Path(person.profile).rglob("*") if path.is_file())


def test_unasked_it_is_a_file_with_its_key_beside_it(served, tmp_path):
    alice = Person(served, tmp_path, "unasked")
    assert alice.status()["vault"] == "file" and alice.run("status").returncode == 1
    assert alice.signs_up().logs_in().status()["vault"] == "file"
    assert "kept in:       file\n" in alice.run("status").out
    assert json.loads((tmp_path / "profile/profile.json").read_text())["vault"] == "file"


def test_a_passphrase(served, tmp_path):
    alice = person(served, tmp_path, "phrase", "passphrase", PASSPHRASE).signs_up().logs_in()
    assert alice.status()["vault"] == "passphrase"
    assert b"a passphrase" not in files(alice) and not (pathlib.Path(alice.profile) / "vault.key").exists()
    calls = [processes.start([*PASSPHRASE, BINARY, "request", "--profile", alice.profile, f"/{number}"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for number in range(2)]
    assert [call.communicate(timeout=60)[1] and call.returncode for call in calls] == [0, 0]
    before = files(alice)
    for prefix, reason, status in (("env", "COUNTERSIGN_VAULT_PASSPHRASE=another"), "the passphrase does not open it", 1), (
            ("env", "COUNTERSIGN_VAULT_PASSPHRASE="), "is empty", 2), ((), "expected COUNTERSIGN_VAULT_PASSPHRASE, or a terminal", 2):
        alice.prefix = prefix
        for command in (["request", "/hello"], ["status"], ["logout"], ["login", "--account", "phrase", "--password-stdin"]):
            done = alice.run(*command, stdin=PASSWORD)
            assert done.returncode == status and reason in done.err, (command, done.err)
    assert files(alice) == before
    alice.prefix = PASSPHRASE
    assert alice.calls("/hello")["headers"]["countersign-account"] == "name:phrase"


def test_a_profile_that_is_added_again_keeps_who_is_signed_in(served, tmp_path):
    alice = person(served, tmp_path, "again", "passphrase", PASSPHRASE).signs_up().logs_in()
    session = alice.status("--offline")["session"]
    assert put(alice).returncode == 0
    assert (alice.status("--offline")["session"], alice.status("--offline")["vault"]) == (session, "passphrase")
    # What is there is not left behind, nor thrown away.
    done = put(alice, "--vault", "file")
    assert done.returncode == 1 and "countersign logout" in done.err
    assert alice.status("--offline")["session"] == session
    assert alice.run("logout").returncode == 0 and put(alice, "--vault", "file").returncode == 0
    alice.prefix = ()
    assert alice.logs_in().status()["vault"] == "file"
    assert alice.calls("/hello")["headers"]["countersign-account"] == "name:again"


@pytest.mark.parametrize("kind", ["", "nowhere", "platform", "secret-service", "tpm", "systemd-creds"])
def test_a_kind_that_is_none(served, tmp_path, kind):
    done = put(Person(served, tmp_path, "none"), "--vault", kind)
    assert done.returncode == 2 and "expected one of file, passphrase" in done.err


def test_a_profile_with_an_unknown_kind_of_vault(served, tmp_path):
    alice = Person(served, tmp_path, "gone").signs_up().logs_in()
    file = tmp_path / "profile/profile.json"
    settings = json.loads(file.read_text())
    file.write_text(json.dumps(settings | {"vault": "platform"}))
    for command in (["request", "/hello"], ["status"], ["login", "--account", "gone", "--password-stdin"]):
        done = alice.run(*command, stdin=PASSWORD)
        assert done.returncode == 2 and "vault `platform`: expected one of file, passphrase" in done.err, done.err
