"""A secret bound to user presence, over the real PAM and the real fprintd with libfprint's virtual sensor:
it is released only on proof of presence."""

import subprocess

import pytest

import fingerprint
import needs
from sensor import FPRINTD, Sensor
from vaults import ask, start

ITEM = ("payments", "anna")
needs_sensor = needs.programs(FPRINTD, "fprintd-enroll", "dbus-daemon")
# As Debian's common-auth is built: what checks, and a refusal where it does not say yes.
STACK = """auth [success=1 default=ignore] pam_exec.so expose_authtok quiet {folder}/check
auth requisite pam_deny.so
auth required pam_permit.so
account required {account}
"""


class Machine:
    """An account whose password PAM knows, and a vault."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "vault").mkdir()
        (folder / "pam").mkdir()
        # pam_exec ends the password with a NUL.
        (folder / "check").write_text(f'#!/bin/sh\n[ "$(tr -d "\\0")" = "$(cat {folder}/password)" ]\n')
        (folder / "check").chmod(0o755)
        self.variables = {"VAULT_PAM": str(folder / "pam"), "VAULT_PASSPHRASE": "vault's"}
        self.stack(STACK)
        self.password("right")

    def stack(self, text, account="pam_permit.so"):
        (self.folder / "pam/countersign").write_text(text.format(folder=self.folder, account=account))

    def password(self, text):
        (self.folder / "password").write_text(text)

    def does(self, *words, typed=None):
        return ask("passphrase", self.folder / "vault", *words, **self.variables,
                   **({} if typed is None else {"VAULT_PASSWORD": typed}))


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_a_password_that_pam_takes_opens_it(machine, note):
    assert machine.does("bind", *ITEM, "root", typed="right") == "bound"
    assert machine.does("release", *ITEM, typed="right") == "present root"
    assert machine.does("release", *ITEM, typed="wrong").startswith("retry: PAM: ")
    assert machine.does("release", *ITEM, typed="").startswith("retry: PAM: ")
    assert machine.does("release", *ITEM).startswith("loginPage: ")
    assert machine.does("release", "payments", "nobody", typed="right").startswith("loginPage: ")
    note("presence: a password, right and wrong, by PAM's own modules in a stack like Debian's")


def test_nothing_but_that_password_opens_it(machine):
    assert machine.does("bind", *ITEM, "root", typed="right") == "bound"
    # PAM now accepts another password, or any: the key is still sealed under the old one.
    machine.password("changed")
    assert machine.does("release", *ITEM, typed="changed").startswith("loginPage: ")
    machine.stack("auth required pam_permit.so\naccount required {account}\n")
    assert machine.does("release", *ITEM, typed="anything").startswith("loginPage: PAM asked for no password")
    machine.stack(STACK, account="pam_deny.so")
    assert machine.does("release", *ITEM, typed="changed").startswith("loginPage: ")
    machine.variables["VAULT_PAM"] = str(machine.folder / "none")
    assert machine.does("release", *ITEM, typed="right").startswith("loginPage: ")


def test_nothing_is_bound_without_the_password(machine):
    assert machine.does("bind", *ITEM, "root", typed="wrong") == "not bound: retry"
    assert machine.does("bind", *ITEM, "root") == "not bound: loginPage"
    assert machine.does("release", *ITEM, typed="right").startswith("loginPage: nothing is kept here")


@needs_sensor
def test_a_finger_opens_what_its_key_file_seals(machine, tmp_path, note):
    with Sensor(tmp_path) as sensor:
        machine.variables |= {"VAULT_FINGER_KEY": str(tmp_path / "finger.key"), "VAULT_FINGER": "root"}
        machine.variables["DBUS_SYSTEM_BUS_ADDRESS"] = sensor.environment["DBUS_SYSTEM_BUS_ADDRESS"]
        assert machine.does("bind", *ITEM, "root", typed="right") == "bound"
        # No finger is enrolled: the password is asked for, and the check is not skipped.
        assert machine.does("release", *ITEM, typed="right") == "present root"
        assert machine.does("release", *ITEM).startswith("loginPage: ")
        sensor.enrol(1)

        def touched(finger):
            # Drawn before the reader waits.
            fingerprint.picture(finger)
            with start("passphrase", machine.folder / "vault", "release", *ITEM, **machine.variables, VAULT_PATIENCE="30") as driver:
                while True:
                    sensor.touch(finger)
                    try:
                        return driver.communicate(timeout=5)[0].strip()
                    except subprocess.TimeoutExpired:
                        # It lay there before the reader was asked to read; as people do, again.
                        continue

        assert touched(1) == "present root"
        assert touched(2) == "retry: the finger was not recognised"
        # No finger comes: after a while the password is asked for.
        assert machine.does("release", *ITEM, typed="right") == "present root"
        # Without the key file a finger opens nothing.
        del machine.variables["VAULT_FINGER_KEY"]
        assert machine.does("release", *ITEM).startswith("loginPage: no password was given")
    note("presence: fprintd over libfprint's virtual sensor, an enrolled finger and a stranger's; the key in a file")
