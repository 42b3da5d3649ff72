"""The Debian packages of script/package: what is in them, that the same program makes the same bytes, and that the service's unit is what
systemd takes. `script/package --test` installs them in a fresh Debian root."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

from needs import programs
from products import BINARY, ROOT

sys.path.insert(0, str(ROOT / "Packaging"))
import package  # noqa: E402

package.COMPRESSION = 0

pytestmark = programs("dpkg-deb", "dpkg-shlibdeps", "lintian")


def run(*command: object, ok: bool = True) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert not ok or done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> list[pathlib.Path]:
    return package.make(pathlib.Path(BINARY), tmp_path_factory.mktemp("packages"), revision="1")


@pytest.fixture(scope="module")
def unpacked(made, tmp_path_factory) -> pathlib.Path:
    root = tmp_path_factory.mktemp("root")
    for path in made:
        run("dpkg-deb", "-x", path, root)
    return root


@pytest.mark.full
def test_the_same_program_makes_the_same_bytes(made, tmp_path):
    again = package.make(pathlib.Path(BINARY), tmp_path, revision="1")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in made]
    other = package.make(pathlib.Path(BINARY), tmp_path, revision="2")
    assert [path.read_bytes() for path in other] != [path.read_bytes() for path in made]


def test_lintian_finds_nothing(made):
    assert run("lintian", "--fail-on", "error,warning", "--allow-root", *made, ok=False) == ""


def test_the_program_needs_no_toolchain(unpacked):
    program = unpacked / "usr/bin/countersign"
    loaded = run("ldd", program)
    assert "libswift" not in loaded and "libFoundation" not in loaded and "not found" not in loaded
    assert run(program, "version").startswith("countersign ")
    # The desktop's libraries are loaded when they are used.
    assert not [name for name in ("libsecret", "libtss2", "libpam", "libpq", "libgio") if name in loaded]


def test_the_packages_depend_on_what_the_program_loads(made, unpacked):
    depends = run("dpkg-deb", "-f", made[0], "Depends")
    assert {"libc6", "libssl3", "libsqlite3-0", "libsodium23", "zlib1g"} <= set(re.findall(r"[a-z0-9.+-]+(?= \(|,|$)", depends))
    bill = json.loads((unpacked / "usr/share/doc/countersign-cli/sbom.spdx.json").read_text())
    names = {each["name"]: each["versionInfo"] for each in bill["packages"]}
    assert {"countersign", "swift-runtime", "swift-foundation-essentials", "libssl3"} <= set(names) and all(names.values())


def test_the_program_for_development_is_a_package_of_its_own(made):
    tool, service, development = made
    files = {path: run("dpkg-deb", "-c", path) for path in made}
    assert "usr/bin/countersign-lab" in files[development]
    assert "bin/countersign-lab" not in files[tool] + files[service]
    assert run("dpkg-deb", "-f", development, "Depends").startswith("countersign-cli (= ")
    for page in ("lab", "selftest", "bench-login"):
        assert f"man1/countersign-{page}.1.gz" in files[development] and f"man1/countersign-{page}.1.gz" not in files[tool]
    assert "man1/countersign-lab-last.1.gz" in files[tool]


def test_manual_pages_and_completions(unpacked):
    commands = package.command_words(pathlib.Path(BINARY))
    assert len(commands) > 70
    for words in commands:
        assert (unpacked / f"usr/share/man/man1/countersign-{'-'.join(words)}.1.gz").exists(), words
    for path in ("bash-completion/completions/countersign", "zsh/vendor-completions/_countersign", "fish/vendor_completions.d/countersign.fish"):
        assert "countersign" in (unpacked / "usr/share" / path).read_text()


@programs("systemd-analyze")
def test_the_unit_is_what_systemd_takes(unpacked, note):
    units = unpacked / "lib/systemd/system"
    # The unit names the program where it will be.
    service = units / "countersign.service"
    service.write_text(service.read_text().replace("/usr/bin/countersign", BINARY))
    complaints = [line for line in run("systemd-analyze", "verify", "--man=no", service, units / "countersign.socket", ok=False).splitlines()
                  if "countersign" in line]
    assert complaints == []
    exposure = run("systemd-analyze", "security", "--offline=true", "--threshold=30", service)
    note(f"systemd-analyze security: {exposure.strip().splitlines()[-1].lstrip('→ ')}")


def test_the_scripts_of_the_packages(unpacked):
    for name in ("postinst", "prerm", "postrm", "countersign-admin"):
        run("sh", "-n", ROOT / "Packaging/countersign" / name)
    assert "usage:" in run(unpacked / "usr/sbin/countersign-admin", "--help")


def test_the_settings_of_the_package_are_valid(unpacked, tmp_path):
    text = (unpacked / "etc/countersign/countersign.json").read_text()
    settings = tmp_path / "countersign.json"
    settings.write_text(text.replace("/var/lib/countersign", str(tmp_path / "data")).replace("/var/log/countersign", str(tmp_path)))
    assert "the settings are valid" in run(BINARY, "serve", "--config", settings, "--check-config")
    # What is commented out is valid, too.
    settings.write_text(re.sub(r'^  // (?="(authority|upstream)")', "  ", settings.read_text(), flags=re.MULTILINE))
    assert "the settings are valid" in run(BINARY, "serve", "--config", settings, "--check-config")
