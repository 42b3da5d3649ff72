"""Where a device's keys are kept, over a real gateway and a TPM in software (swtpm): login, refresh and device-signed routes with keys that
the TPM alone uses; what the server is told of it; a TPM that is gone, and one that was cleared."""

import json
import shutil

import pytest

import needs
from clock import Clock
from gateway import Gateway, run
from person import PASSWORD, Person
from vaults import TPM, ask

needs_tpm = needs.programs("swtpm")
# Where nothing answers.
NO_TPM = ("env", "COUNTERSIGN_TPM=swtpm:host=127.0.0.1,port=1")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("device-keys")
    with Gateway(folder, clock=Clock(folder)) as gateway:
        gateway.add_app("demo", require="session", registration="open", device_signed="/pay")
        yield gateway


@pytest.fixture
def tpm(tmp_path):
    (tmp_path / "machine").mkdir()
    with TPM(tmp_path / "machine") as running:
        yield running


@pytest.fixture
def short(served):
    """Tokens run out quickly."""
    served.admin("app", "policy", "demo", "--set", "token-lifetime=2s")
    yield 2.1
    served.admin("app", "policy", "demo", "--set", "token-lifetime=2h")


def over(tpm: TPM) -> tuple[str, str]:
    return ("env", f"COUNTERSIGN_TPM={tpm.device}")


def listed(gateway: Gateway, name: str) -> dict:
    """The account's one live session, as an administrator sees it."""
    sessions = json.loads(gateway.admin("session", "list", "demo", name, "--json").out)["sessions"]
    assert len(sessions) == 1, sessions
    return sessions[0]


def choose(person: Person, keys: str) -> None:
    """Adds the profile again, with another choice."""
    done = run("profile", "add", person.profile, "--url", person.gateway.url, "--key-id", person.release["key_id"], "--secret-stdin",
               "--authority-key", person.release["authority_key"], "--ca", person.gateway.data / "tls/certificate.pem",
               "--device-keys", keys, stdin=person.release["secret"])
    assert done.returncode == 0, done.err


@needs_tpm
def test_a_tpm_keeps_the_contract_of_device_keys(tpm, tmp_path, note):
    lines = ask(f"tpm={tpm.device}", tmp_path, "device-keys").splitlines()
    assert len(lines) >= 8 and all(line.startswith("ok ") for line in lines), lines
    note("device keys: the contract, over swtpm")


@needs_tpm
def test_login_refresh_and_a_device_signed_route_with_keys_of_a_tpm(served, tpm, tmp_path, short):
    alice = Person(served, tmp_path / "alice", "tpm-alice")
    alice.prefix = over(tpm)
    alice.signs_up().logs_in()
    status = alice.status()
    assert (status["key_storage"], status["kind"]) == ("tpm", "device")
    assert "device keys:   tpm\n" in alice.run("status").out
    assert alice.calls("-d", "amount=1", "/pay/now")["headers"]["countersign-account"] == "name:tpm-alice"
    # Each renewal takes a signature and an agreement.
    for _ in range(2):
        before = alice.status("--offline")["epoch"]
        served.clock.advance(short)
        assert alice.calls("/hello")["headers"]["countersign-account"] == "name:tpm-alice"
        assert alice.status("--offline")["epoch"] > before
    # The server knows, and so does the account's owner.
    assert listed(served, "tpm-alice")["key_storage"] == "tpm"
    text = served.admin("session", "list", "demo", "tpm-alice").out
    assert "KEYS" in text and " tpm " in text
    own = json.loads(alice.run("request", "/countersign/v1/sessions").out)["sessions"]
    assert [session["key_storage"] for session in own] == ["tpm"]
    assert json.loads(alice.run("request", "/countersign/v1/session").out)["key_storage"] == "tpm"


def test_software_is_told_too(served, tmp_path):
    bob = Person(served, tmp_path / "bob", "soft-bob")
    choose(bob, "software")
    bob.signs_up().logs_in()
    assert bob.status("--offline")["key_storage"] == "software"
    assert listed(served, "soft-bob")["key_storage"] == "software"
    assert bob.calls("-d", "amount=1", "/pay")["headers"]["countersign-account"] == "name:soft-bob"


def test_a_session_of_tokens_has_no_keys(served, tmp_path):
    served.admin("app", "policy", "demo", "--set", "password-login=on")
    carol = Person(served, tmp_path / "carol", "bearer-carol").signs_up()
    carol.logs_in("--password-login")
    assert carol.status("--offline")["key_storage"] is None
    assert listed(served, "bearer-carol")["key_storage"] is None
    assert " none " in served.admin("session", "list", "demo", "bearer-carol").out


@needs_tpm
def test_a_tpm_that_was_cleared_asks_for_a_login(served, tpm, tmp_path):
    dora = Person(served, tmp_path / "dora", "cleared-dora")
    dora.prefix = over(tpm)
    dora.signs_up().logs_in()
    (tmp_path / "other").mkdir()
    with TPM(tmp_path / "other") as other:
        dora.prefix = over(other)
        # Under a live token the keys are not asked for.
        assert dora.calls("/hello")["headers"]["countersign-account"] == "name:cleared-dora"
        done = dora.run("request", "-d", "amount=1", "/pay")
        assert done.returncode == 1 and "has lost the session's keys" in done.err and "signs in again" in done.err, done.err
        assert done.err.startswith("countersign: "), "nothing of the library's own"
        assert dora.run("status", "--offline").returncode == 1
        assert dora.status("--offline")["reason"] == "device-key-lost"
        done = dora.run("request", "--require-session", "/hello")
        assert done.returncode == 1 and "the session has ended" in done.err and "nothing was sent" in done.err, done.err
        dora.logs_in()
        assert dora.status("--offline")["key_storage"] == "tpm"
        assert dora.calls("-d", "amount=1", "/pay")["headers"]["countersign-account"] == "name:cleared-dora"


@needs_tpm
def test_a_tpm_that_is_away_ends_nothing(served, tpm, tmp_path):
    erin = Person(served, tmp_path / "erin", "away-erin")
    erin.prefix = over(tpm)
    erin.signs_up().logs_in()
    erin.prefix = NO_TPM
    done = erin.run("request", "-d", "amount=1", "/pay")
    assert done.returncode == 1 and "the device's keys: TPM" in done.err, done.err
    assert erin.status("--offline")["signed_in"] is True
    erin.prefix = over(tpm)
    assert erin.calls("-d", "amount=1", "/pay")["headers"]["countersign-account"] == "name:away-erin"
    # A login goes on without it, and says so.
    erin.prefix = NO_TPM
    assert erin.logs_in().status("--offline")["key_storage"] == "software"


@needs_tpm
def test_hardware_can_be_demanded(served, tpm, tmp_path):
    finn = Person(served, tmp_path / "finn", "demanding-finn").signs_up()
    choose(finn, "hardware")
    finn.prefix = NO_TPM
    done = finn.run("login", "--account", finn.name, "--password-stdin", stdin=PASSWORD + "\n")
    assert done.returncode == 1 and "the device's keys: TPM" in done.err, done.err
    finn.prefix = over(tpm)
    assert finn.logs_in().status("--offline")["key_storage"] == "tpm"


def test_a_choice_that_is_none(served, tmp_path):
    person = Person(served, tmp_path / "none", "none")
    done = run("profile", "add", person.profile, "--url", served.url, "--key-id", "k", "--secret-stdin", "--device-keys", "gold",
               stdin="secret")
    assert done.returncode == 2 and "expected one of auto, hardware, software" in done.err, done.err


@needs_tpm
def test_a_copied_profile_signs_nothing_on_another_machine(served, tpm, tmp_path):
    """The key of the vault lies beside it, and still the copy has the session's root alone."""
    gina = Person(served, tmp_path / "gina", "copied-gina")
    gina.prefix = over(tpm)
    gina.signs_up().logs_in()
    (tmp_path / "other").mkdir()
    with TPM(tmp_path / "other") as theirs:
        copy = Person(served, tmp_path / "copy", "copied-gina")
        shutil.rmtree(copy.profile)
        shutil.copytree(gina.profile, copy.profile)
        copy.prefix = over(theirs)
        done = copy.run("request", "-d", "amount=1", "/pay")
        assert done.returncode == 1 and "has lost the session's keys" in done.err, done.err
    assert gina.calls("-d", "amount=1", "/pay")["headers"]["countersign-account"] == "name:copied-gina"
