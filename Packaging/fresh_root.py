#!/usr/bin/env python3
"""Installs the packages in a fresh Debian root as an operator would, and uses, upgrades, removes and purges them. As root. The mirror is
this machine's. Without systemd as the first process, the service's command is run by hand, as the service's user.

Usage: fresh_root.py PROGRAM"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import package

# What an operator types until the first signed request has reached the backend, after the packages were copied to the machine.
COMMANDS = 5


def mirror(release: str) -> str:
    """Debian's, of this machine's sources."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN)|$(CODENAME)|$(REPO_URI)"], check=True, capture_output=True,
                            text=True).stdout
    found = [line.split("|")[2] for line in listed.splitlines() if line.startswith(f"Debian|{release}|")]
    return found[0] if found else sys.exit(f"package: expected a source of Debian {release} whose index was fetched: try `apt-get update`")


class Root:
    """A Debian system in a folder."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        release = re.search(r"VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text())[1]
        print(f"package: a fresh Debian {release}", flush=True)
        subprocess.run(["debootstrap", "--variant=minbase", release, folder, mirror(release)], check=True, stdout=subprocess.DEVNULL)
        shutil.copyfile("/etc/resolv.conf", folder / "etc/resolv.conf")
        for configuration in pathlib.Path("/etc/apt/apt.conf.d").glob("*proxy*"):
            shutil.copy(configuration, folder / "etc/apt/apt.conf.d")

    def run(self, *command: object, ok: bool = True, stdin: str = "") -> subprocess.CompletedProcess:
        done = subprocess.run(["chroot", self.folder, *map(str, command)], input=stdin, text=True, capture_output=True, check=False,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root", "LC_ALL": "C"})
        if ok and done.returncode != 0:
            sys.exit(f"package: {' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done

    def install(self, *packages: pathlib.Path) -> None:
        for path in packages:
            shutil.copy(path, self.folder / "root")
        self.run("apt-get", "install", "-y", "--no-install-recommends", *(f"/root/{path.name}" for path in packages))


class Serving:
    """The service's command, as its user, in the root: what systemd would run."""

    def __init__(self, root: Root):
        self.root = root
        self.process = subprocess.Popen(
            ["chroot", root.folder, "setpriv", "--reuid=countersign", "--regid=countersign", "--init-groups", "env",
             "COUNTERSIGN_CONFIG=/etc/countersign/countersign.json", "/usr/bin/countersign", "serve"],
            stdout=subprocess.PIPE, text=True, env={"PATH": "/usr/sbin:/usr/bin"})

    def __enter__(self) -> "Serving":
        line = self.process.stdout.readline()
        expect(line.startswith("listening on "), f"the service does not listen: {line}")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def expect(holds: bool, what: str) -> None:
    if not holds:
        sys.exit(f"package: {what}")


def first_request(root: Root) -> None:
    """The echo answers in place of a backend."""
    typed = 1  # apt-get install
    root.run("countersign-admin", "app", "add", "shop", "--require", "signed")
    made = json.loads(root.run("countersign-admin", "release", "add", "shop", "--platform", "ios", "--version", "1.0", "--json").stdout)
    typed += 2
    root.run("countersign", "profile", "add", "phone", "--url", "https://127.0.0.1:8443", "--key-id", made["key_id"], "--secret-stdin",
             "--ca", "/var/lib/countersign/tls/certificate.pem", stdin=made["secret"])
    answer = root.run("countersign", "request", "--profile", "phone", "/hello").stdout
    typed += 2
    expect("countersign-app" in answer.lower(), f"the first signed request does not arrive: {answer}")
    expect(typed <= COMMANDS, f"{typed} commands to the first signed request")
    print(f"package: the first signed request after {typed} commands", flush=True)


def main() -> None:
    program = pathlib.Path(sys.argv[1]).resolve()
    expect(os.getuid() == 0 and shutil.which("debootstrap") is not None, "expected root, and debootstrap")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="countersign-root-"))
    try:
        first, second = (package.make(program, folder / name, revision=name) for name in ("1", "2"))
        root = Root(folder / "root")
        root.run("mkdir", "-p", "/proc")
        subprocess.run(["mount", "-t", "proc", "proc", root.folder / "proc"], check=True)
        try:
            life(root, first, second)
        finally:
            subprocess.run(["umount", root.folder / "proc"], check=True)
    finally:
        shutil.rmtree(folder)


def lists_as_enabled(root: Root) -> bool:
    """Whether systemd would start the service with the machine."""
    links = root.folder / "etc/systemd/system"
    return (links / "multi-user.target.wants/countersign.service").is_symlink() and not (links / "countersign.service").is_symlink()


def life(root: Root, first: list[pathlib.Path], second: list[pathlib.Path]) -> None:
    *first, development = first
    *second, _ = second
    root.install(*first)
    expect(root.run("stat", "-c", "%U %a", "/var/lib/countersign").stdout.split() == ["countersign", "700"], "the data folder is open to others")
    expect(lists_as_enabled(root), "the service is not enabled")
    expect(not (root.folder / "etc/systemd/system/sockets.target.wants").exists(), "the socket is enabled without being asked for")
    environment = root.folder / "etc/countersign/environment"
    expect(environment.stat().st_mode & 0o777 == 0o600, "the file for passwords is open to others")
    # Valid for systemd, and nothing that a shell may run.
    environment.write_text('# a comment\nCOUNTERSIGN_LOG_SAMPLE="7"\nCOUNTERSIGN_ASSERTION_AUDIENCE=a&$(touch${IFS}/pwned);touch${IFS}/pwned\nOTHER=1\n')
    shown = root.run("countersign-admin", "serve", "--print-config").stdout
    expect('"log_sample": 7' in shown.replace(" :", ":") and "a&$(touch${IFS}/pwned);" in shown, f"the environment file is not read: {shown}")
    expect(not (root.folder / "pwned").exists(), "the environment file is run")
    environment.write_text("")
    expect(root.run("countersign", "version").stdout.startswith("countersign "), "the program does not run")
    loaded = root.run("ldd", "/usr/bin/countersign").stdout
    expect("libswift" not in loaded and "not found" not in loaded, f"the program is not whole: {loaded}")
    missing = root.run("countersign", "lab", "--list", ok=False)
    expect(missing.returncode == 1 and "countersign-lab" in missing.stderr, f"no package is named for the lab: {missing.stderr}")
    root.install(development)
    expect("SCHEME" in root.run("countersign", "lab", "--list").stdout, "the program for development does not run")
    root.run("apt-get", "remove", "-y", "countersign-lab")
    check = root.run("env", "COUNTERSIGN_CONFIG=/etc/countersign/countersign.json", "countersign", "serve", "--check-config").stdout
    expect("the settings are valid" in check, f"the settings of the package are not valid: {check}")
    with Serving(root):
        first_request(root)
    settings = root.folder / "etc/countersign/countersign.json"
    settings.write_text(settings.read_text().replace('"log":', '"log_sample": 30,\n  "log":'))
    changed = settings.read_text()
    root.install(*second)
    expect(settings.read_text() == changed, "an upgrade replaces the operator's settings")
    with Serving(root):
        answer = root.run("countersign", "request", "--profile", "phone", "/hello").stdout
        expect("countersign-app" in answer.lower(), "after the upgrade nothing is served")
    print("package: an upgrade keeps settings, accounts and keys", flush=True)
    root.run("apt-get", "remove", "-y", "countersign", "countersign-cli")
    expect(not (root.folder / "usr/bin/countersign").exists() and settings.exists(), "a removal leaves the program, or removes the settings")
    root.install(*second)
    expect(lists_as_enabled(root), "after a removal and an installation the service is not enabled")
    root.run("apt-get", "remove", "-y", "countersign", "countersign-cli")
    purged = root.run("apt-get", "purge", "-y", "countersign", "countersign-cli")
    expect("is kept" in purged.stdout + purged.stderr, "a purge does not say what it keeps")
    expect((root.folder / "var/lib/countersign/master.key").exists() and not settings.exists(), "a purge removes keys, or leaves settings")
    left = root.run("find", "/usr", "/lib/systemd", "-name", "*countersign*").stdout
    expect(left == "", f"a purge leaves {left}")
    print("package: removed, and purged but for accounts and keys", flush=True)


if __name__ == "__main__":
    began = time.monotonic()
    main()
    print(f"package: tested in {time.monotonic() - began:.0f} s")
