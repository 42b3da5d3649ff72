"""Where a profile keeps its session: in gnome-keyring, systemd-creds, a file under a passphrase and a
sealed file, with the real server."""

import json
import os
import pathlib
import subprocess

import pytest

import needs
import processes
from gateway import BINARY, Gateway, run
from person import PASSWORD, Person
from vaults import Keyring

needs_keyring = needs.programs("gnome-keyring-daemon", "dbus-daemon", "dbus-send")
NO_BUS = ("env", "-u", "DBUS_SESSION_BUS_ADDRESS", "-u", "DISPLAY", "XDG_RUNTIME_DIR=/nonexistent")
PASSPHRASE = ("env", "COUNTERSIGN_VAULT_PASSPHRASE=a passphrase")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Gateway(tmp_path_factory.mktemp("vaults")) as gateway:
        gateway.add_app("demo", registration="open")
        yield gateway


@pytest.fixture
def keyring(tmp_path):
    (tmp_path / "keyring").mkdir()
    with Keyring(tmp_path / "keyring") as running:
        running.prefix = ("env", *(f"{name}={value}" for name, value in running.variables.items()))
        yield running


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


@needs_keyring
def test_the_keyring_of_whoever_sits_there(served, keyring, tmp_path):
    both = [person(served, tmp_path, name, "platform", keyring.prefix) for name in ("ring-one", "ring-two")]
    for each in both:
        assert each.signs_up().logs_in().status()["vault"] == "secret-service"
    # One server, one keyring, two people: none finds the other's.
    for each in both:
        assert each.calls("/hello")["headers"]["countersign-account"] == f"name:{each.name}"
    assert not (pathlib.Path(both[0].profile) / "vault").exists()
    keyring.lock()
    done = both[0].run("request", "/hello")
    assert done.returncode == 1 and "its vault is locked" in done.err and "no account is signed in" not in done.err + done.out, done.err
    assert both[0].run("status").returncode == 1
    keyring.end()
    keyring.begin("--unlock")
    assert both[0].calls("/hello")["headers"]["countersign-account"] == "name:ring-one"
    assert both[0].run("logout").returncode == 0 and both[1].run("status", "--offline").returncode == 0


@needs.programs("systemd-creds")
@needs.machine(os.geteuid() == 0 and not os.path.exists("/dev/tpmrm0"), "root without a TPM, which would be tried first")
def test_the_machines_own_credential_secret(served, tmp_path, note):
    alice = person(served, tmp_path, "creds", "platform", NO_BUS).signs_up().logs_in()
    assert alice.status()["vault"] == "systemd-creds"
    assert not (pathlib.Path(alice.profile) / "vault").exists()
    assert alice.calls("/hello")["headers"]["countersign-account"] == "name:creds"
    # On another machine the vault cannot be opened, which is not reported as "signed out".
    alice.prefix = (*NO_BUS, "unshare", "-m", "sh", "-c", 'mount -t tmpfs none /var/lib/systemd && exec "$@"', "-")
    done = alice.run("request", "/hello")
    assert done.returncode == 1 and "its vault" in done.err, done.err
    alice.prefix = NO_BUS
    assert alice.calls("/hello")["headers"]["countersign-account"] == "name:creds"
    note("command line: a profile's vault over systemd-creds")


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


@pytest.mark.parametrize("kind", ["", "nowhere"])
def test_a_kind_that_is_none(served, tmp_path, kind):
    done = put(Person(served, tmp_path, "none"), "--vault", kind)
    assert done.returncode == 2 and "expected one of file, platform, passphrase" in done.err
