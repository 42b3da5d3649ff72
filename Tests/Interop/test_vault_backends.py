"""Every back end of the vault over the real thing: gnome-keyring, a TPM (swtpm), systemd-creds; one contract for all. And what each
says when it is closed, gone or another's: never that nothing is there."""

import os
import shutil
import subprocess

import pytest

import needs
from vaults import BARE, TPM, Keyring, ask, start

needs_keyring = needs.programs("gnome-keyring-daemon", "dbus-daemon", "dbus-send")
needs_tpm = needs.programs("swtpm")
needs_root = needs.machine(os.geteuid() == 0, "root, who alone reads the key of systemd-creds")
PASSPHRASE = {"VAULT_PASSPHRASE": "correct horse"}
ITEM = ("service", "account")


@pytest.fixture
def keyring(tmp_path):
    with Keyring(tmp_path) as running:
        yield running


@pytest.fixture
def tpm(tmp_path):
    with TPM(tmp_path) as running:
        yield running


def keeps_the_contract(back_end, folder, **variables) -> bool:
    lines = ask(back_end, folder, "contract", **variables).splitlines()
    assert all(line.startswith("ok ") for line in lines), lines
    return len(lines) >= 9


def version(program) -> str:
    """What a test ran over, so that a run says that it did."""
    return subprocess.run([program, "--version"], capture_output=True, text=True).stdout.splitlines()[0]


@needs_keyring
def test_the_secret_service(keyring, tmp_path, note):
    assert keeps_the_contract("secret-service", tmp_path, **keyring.variables)
    note(f"the vault's contract, over {version('gnome-keyring-daemon')}")


@needs_tpm
def test_a_file_under_a_tpm(tpm, tmp_path, note):
    assert keeps_the_contract(f"tpm={tpm.device}", tmp_path)
    note(f"the vault's contract, over {version('swtpm')}")


@needs.programs("systemd-creds")
@needs_root
def test_a_file_under_systemd_creds(tmp_path, note):
    assert keeps_the_contract("systemd-creds", tmp_path)
    note(f"the vault's contract, over systemd-creds of {version('systemd-creds')}")


def test_a_file_under_a_passphrase(tmp_path):
    assert keeps_the_contract("passphrase", tmp_path, **PASSPHRASE)


@needs_keyring
def test_a_locked_keyring_is_not_an_empty_one(keyring, tmp_path):
    def vault(*words):
        return ask("secret-service", tmp_path, *words, **keyring.variables)

    assert vault("write", *ITEM, "held") == ""
    locked = (lambda: keyring.lock()), (lambda: (keyring.end(), keyring.begin()))
    for lock in locked:
        lock()
        for words in [("read", *ITEM), ("read", "service", "nobody"), ("names",), ("write", *ITEM, "x"), ("remove", *ITEM)]:
            assert vault(*words).startswith("locked: "), words
        # Opened again, as at the next login: it is all there, and what is not there is absent.
        keyring.end()
        keyring.begin("--unlock")
        assert vault("read", *ITEM) == "value held"
        assert vault("read", "service", "nobody") == "absent"
    keyring.end()
    assert vault("read", *ITEM).startswith("failed: Secret Service")


@needs_keyring
def test_a_program_outlives_its_keyring(keyring, tmp_path):
    ask("secret-service", tmp_path, "write", *ITEM, "held", **keyring.variables)
    with start("secret-service", tmp_path, "reread", *ITEM, **keyring.variables) as reader:
        def read():
            reader.stdin.write("again\n")
            reader.stdin.flush()
            return reader.stdout.readline().strip()

        assert read() == "value held"
        keyring.end()
        keyring.begin("--unlock")
        assert read() == "value held"
        reader.stdin.close()


@needs_keyring
def test_the_keyring_seals_what_it_keeps(keyring, tmp_path):
    ask("secret-service", tmp_path, "write", *ITEM, "in-the-open?", **keyring.variables)
    files = list((tmp_path / "data").rglob("*.keyring"))
    assert files and all(b"in-the-open?" not in file.read_bytes() for file in files)


@needs_tpm
def test_another_machines_tpm_opens_nothing(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with TPM(tmp_path / "a") as ours:
        assert ask(f"tpm={ours.device}", tmp_path, "write", *ITEM, "held") == ""
        assert b"held" not in (tmp_path / "items.sealed").read_bytes()
        device, whole = ours.device, (tmp_path / "items.sealed").read_bytes()
    assert ask(f"tpm={device}", tmp_path, "read", *ITEM).startswith("failed: TPM")
    with TPM(tmp_path / "b") as other:
        assert "another machine's" in ask(f"tpm={other.device}", tmp_path, "read", *ITEM)
        assert ask(f"tpm={other.device}", tmp_path, "write", *ITEM, "x").startswith("failed: TPM")
    assert (tmp_path / "items.sealed").read_bytes() == whole
    with TPM(tmp_path / "a") as again:
        assert ask(f"tpm={again.device}", tmp_path, "read", *ITEM) == "value held"


@needs_tpm
def test_a_spoilt_object_is_refused_by_the_tpm(tpm, tmp_path):
    file = tmp_path / "items.sealed"
    ask(f"tpm={tpm.device}", tmp_path, "write", *ITEM, "held")
    whole = file.read_bytes()
    for at in range(7, len(whole), 17):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
        assert ask(f"tpm={tpm.device}", tmp_path, "read", *ITEM).startswith("failed: "), at
    file.write_bytes(whole)
    assert ask(f"tpm={tpm.device}", tmp_path, "read", *ITEM) == "value held"


NO_TPM = {"VAULT_TPM": "device:/dev/null/no-tpm"}
NO_CREDS = {"VAULT_SYSTEMD_CREDS": shutil.which("false") or "false"}


@needs_tpm
def test_the_platforms_order_and_its_reasons(tpm, tmp_path):
    chosen = ask("platform", tmp_path / "a", "choice", VAULT_TPM=tpm.device).splitlines()
    assert chosen[0] == "chose tpm" and chosen[1].startswith("not secret-service Secret Service: no Secret Service")
    chosen = ask("platform", tmp_path / "b", "choice", **NO_TPM, **NO_CREDS, **PASSPHRASE).splitlines()
    assert chosen[0] == "chose passphrase"
    assert [line.split()[1] for line in chosen[1:]] == ["secret-service", "tpm", "systemd-creds"]
    nothing = ask("platform", tmp_path / "c", "choice", **NO_TPM, **NO_CREDS)
    assert nothing.startswith("failed: this machine has no place for secrets")
    assert not (tmp_path / "c/back-end").exists()
    (tmp_path / "b/back-end").write_text("another's")
    assert ask("platform", tmp_path / "b", "read", *ITEM, **PASSPHRASE).endswith("names no back end")


@needs.programs("systemd-creds")
@needs_root
def test_systemd_creds_comes_before_a_passphrase(tmp_path):
    chosen = ask("platform", tmp_path / "a", "choice", **NO_TPM, **PASSPHRASE).splitlines()
    assert chosen[0] == "chose systemd-creds"


@needs_keyring
def test_a_choice_stays_when_the_keyring_is_away(keyring, tmp_path):
    folder = tmp_path / "vault"
    assert ask("platform", folder, "choice", **keyring.variables) == "chose secret-service"
    assert ask("platform", folder, "write", *ITEM, "held", **keyring.variables) == ""
    # Over ssh: no session bus, and a passphrase would do.
    assert "DBUS_SESSION_BUS_ADDRESS" not in BARE
    assert ask("platform", folder, "read", *ITEM, **NO_TPM, **PASSPHRASE).startswith("failed: Secret Service")
    assert ask("platform", folder, "write", *ITEM, "x", **NO_TPM, **PASSPHRASE).startswith("failed: Secret Service")
    assert ask("platform", folder, "read", *ITEM, **keyring.variables) == "value held"


@needs_keyring
@pytest.mark.parametrize("rule, expected", [({}, "absent"), ({"VAULT_KEEPS": "1"}, "value held")])
def test_a_program_installed_again_follows_its_rule(keyring, tmp_path, rule, expected):
    folder = tmp_path / "app"

    def place(*words):
        return ask("place", folder, *words, **keyring.variables, **rule)

    for service in ("countersign", "another"):
        assert place("write", service, "anna", "held") == ""
    assert place("read", "countersign", "anna") == "value held"
    # Removed with its folder; the keyring stays.
    shutil.rmtree(folder)
    keyring.end()
    keyring.begin()
    assert place("read", "countersign", "anna").startswith("locked: ")
    keyring.end()
    keyring.begin("--unlock")
    assert place("read", "countersign", "anna") == expected
    assert place("read", "another", "anna") == "value held"


def test_a_place_asks_for_its_passphrase(tmp_path):
    # What an earlier start chose on a machine that has nothing else.
    folder = tmp_path / "app"
    folder.mkdir(mode=0o700)
    (folder / "back-end").write_text("passphrase")
    (folder / "back-end").chmod(0o600)
    assert ask("place", folder, "write", *ITEM, "held", **PASSPHRASE) == ""
    assert ask("place", folder, "read", *ITEM, **PASSPHRASE) == "value held"
    assert ask("place", folder, "read", *ITEM).startswith("locked: ")
    assert ask("place", folder, "read", *ITEM, VAULT_PASSPHRASE="wrong").startswith("locked: ")
