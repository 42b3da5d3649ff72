"""The client's libraries for user presence are loaded when they are used (decision 0063): a server has none of them, and a program on a
machine without one says which is missing, and works otherwise."""

import os
import pathlib
import re
import subprocess

import needs
from gateway import Gateway
from products import BINARY, NOTES
from vaults import start

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
def test_without_pam_no_password_is_right(tmp_path):
    (tmp_path / "vault").mkdir()
    variables = {"VAULT_PASSPHRASE": "vault's", "VAULT_PASSWORD": "right", "VAULT_PAM": str(tmp_path)}
    said = without("libpam.so.0", "passphrase", tmp_path / "vault", "bind", "service", "account", "text", **variables)
    assert "not bound" in said, said
    with start("passphrase", tmp_path / "vault", "names", **variables) as driver:
        assert driver.communicate(timeout=60)[0] == "", "and nothing is kept that it would open"


def test_an_app_is_linked_with_openssl_libsodium_and_libcurl_alone():
    section = subprocess.run(["readelf", "-d", NOTES], capture_output=True, text=True, check=True).stdout
    # The others are the C library's, the C++ library's and Swift's.
    others = re.compile(r"(c|m|dl|rt|util|pthread|stdc\+\+|gcc_s|BlocksRuntime|dispatch|_?Foundation.*|_?swift.*)$")
    needed = re.findall(r"\(NEEDED\).*\[lib([^.\]]*)", section)
    assert {name for name in needed if not others.match(name)} == {"crypto", "curl", "sodium", "ssl"}, needed
