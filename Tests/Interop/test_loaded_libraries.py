"""The client's desktop libraries are loaded when they are used (decision 0063): a server has none of them, and a program on a machine
without one says which is missing, and works otherwise."""

import os
import pathlib
import re
import subprocess

import pytest

import needs
from gateway import Gateway
from products import BINARY
from vaults import TPM, start

DESKTOP = re.compile(r"lib(secret|gio|gobject|glib|gmodule|tss2|pam)\b")


def can_hide() -> bool:
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


needs_mounts = needs.machine(can_hide(), "a mount namespace of one's own")


def path_of(library: str) -> str:
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return re.search(rf"^\t{re.escape(library)} .*=> (\S+)$", listed, re.MULTILINE)[1]


def without(library: str, back_end: str, folder: pathlib.Path, *words: str, **variables: str) -> str:
    """What the vault says where an empty file is in the library's place."""
    hide = ("unshare", "-m", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"', os.path.realpath(path_of(library)))
    with start(back_end, folder, *words, prefix=hide, **variables) as driver:
        output, _ = driver.communicate(timeout=60)
    assert driver.returncode in (0, 1), (driver.returncode, output)
    return output.strip()


def test_the_program_is_not_linked_with_them():
    loaded = subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=True).stdout
    assert "libsqlite3" in loaded
    assert not DESKTOP.findall(loaded)


def test_a_server_has_none_of_them(tmp_path):
    with Gateway(tmp_path / "gateway") as running:
        running.add_app("demo")
        assert running.send(running.add_release().request()).status == 200
        maps = pathlib.Path(f"/proc/{running.process.pid}/maps").read_text()
    assert "libsqlite3" in maps
    assert not DESKTOP.findall(maps)


@needs_mounts
@pytest.mark.parametrize(("library", "package"), [("libsecret-1.so.0", "libsecret-1-0"), ("libgio-2.0.so.0", "libglib2.0-0")])
def test_without_the_keyrings_library_another_place_is_chosen(library, package, tmp_path):
    said = without(library, "secret-service", tmp_path, "read", "service", "account")
    # The dynamic linker names the one that it cannot load: GIO, where libsecret needs it.
    assert said.startswith("failed: ") and library in said and "install " in said, said
    said = without(library, "platform", tmp_path, "choice", VAULT_TPM="device:/nonexistent", VAULT_PASSPHRASE="correct horse",
                   VAULT_SYSTEMD_CREDS="/nonexistent")
    assert said.startswith("chose passphrase\n") and f"not secret-service {path_of(library)}" in said.replace(
        f" {library}", f" {path_of(library)}"), said
    if library.startswith("libsecret"):
        assert f"install {package}" in said, said


@needs_mounts
@needs.programs("swtpm")
@pytest.mark.parametrize("library", ["libtss2-mu.so.0", "libtss2-rc.so.0", "libtss2-esys.so.0", "libtss2-tctildr.so.0"])
def test_without_a_library_of_the_tpm_nothing_is_lost(library, tmp_path):
    with TPM(tmp_path) as tpm:
        with start(f"tpm={tpm.device}", tmp_path, "write", "service", "account", "held") as driver:
            assert driver.communicate(timeout=60)[0] == ""
        said = without(library, f"tpm={tpm.device}", tmp_path, "read", "service", "account")
        assert said.startswith("failed: ") and library in said and "install libtss2-" in said, said
        said = without(library, f"tpm={tpm.device}", tmp_path, "device-keys")
        assert "unavailable(" in said and "lost(" not in said and library in said, said
        with start(f"tpm={tpm.device}", tmp_path, "read", "service", "account") as driver:
            assert driver.communicate(timeout=60)[0] == "value held\n"


@needs_mounts
def test_without_pam_no_password_is_right(tmp_path):
    (tmp_path / "vault").mkdir()
    variables = {"VAULT_PASSPHRASE": "vault's", "VAULT_PASSWORD": "right", "VAULT_PAM": str(tmp_path)}
    said = without("libpam.so.0", "passphrase", tmp_path / "vault", "bind", "service", "account", "text", **variables)
    assert "not bound" in said, said
    with start("passphrase", tmp_path / "vault", "names", **variables) as driver:
        assert driver.communicate(timeout=60)[0] == "", "and nothing is kept that it would open"
