#!/usr/bin/env python3
"""Makes Debian packages of the built programs: countersign-cli, with the program, its manual pages and completions, countersign, the
service, and countersign-lab, with the program for development that is beside PROGRAM. The same programs and commit make the same bytes.
script/package builds the programs and calls this.

Usage: package.py PROGRAM FOLDER [--revision N]"""

import argparse
import datetime
import functools
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
# The level of xz.
COMPRESSION = 6
# Of the one who makes the package, as in Maintainer fields.
MAINTAINER = "Countersign <countersign@example.com>"
PROGRAM_PACKAGE, SERVICE_PACKAGE, LAB_PACKAGE = "countersign-cli", "countersign", "countersign-lab"
# A file's path below its package, where it comes from, and its mode.
SERVICE_FILES = [
    ("lib/systemd/system/countersign.service", "countersign.service", 0o644),
    ("lib/systemd/system/countersign.socket", "countersign.socket", 0o644),
    ("etc/countersign/countersign.json", "countersign.json", 0o644),
    # May have passwords.
    ("etc/countersign/environment", "environment", 0o600),
    ("etc/logrotate.d/countersign", "countersign.logrotate", 0o644),
    ("usr/sbin/countersign-admin", "countersign-admin", 0o755),
]
# What lintian is told, by package: the packages are not of Debian's archive, so there is no wish of its bug tracker to close.
OVERRIDES = {
    PROGRAM_PACKAGE: ["initial-upload-closes-no-bugs"],
    LAB_PACKAGE: ["initial-upload-closes-no-bugs"],
    SERVICE_PACKAGE: ["initial-upload-closes-no-bugs", "non-standard-file-perm 0600 != 0644 [etc/countersign/environment]"],
}


def said(*command: object, folder: pathlib.Path = ROOT) -> str:
    return subprocess.run([*map(str, command)], check=True, capture_output=True, text=True, cwd=folder).stdout


@functools.cache
def page(program: pathlib.Path, *words: str) -> str:
    """The manual page of a command."""
    return said(program, "man", *words)


def put(path: pathlib.Path, content: bytes | str, *, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)


def compressed(text: str) -> bytes:
    """Without a time, so that the same text makes the same bytes."""
    return gzip.compress(text.encode(), 9, mtime=0)


class Package:
    """A tree of files, and the control file that describes it."""

    def __init__(self, name: str, tree: pathlib.Path, *, version: str, made: datetime.datetime):
        self.name, self.tree, self.version, self.made = name, tree, version, made

    def add(self, path: str, content: bytes | str, *, mode: int = 0o644) -> None:
        put(self.tree / path, content, mode=mode)

    def add_documents(self) -> None:
        folder = f"usr/share/doc/{self.name}"
        self.add(f"{folder}/copyright", (HERE / "copyright").read_text())
        entry = (f"{self.name} ({self.version}) unstable; urgency=medium\n\n  * See CHANGELOG.md of the project.\n\n"
                 f" -- {MAINTAINER}  {self.made.strftime('%a, %d %b %Y %H:%M:%S +0000')}\n")
        self.add(f"{folder}/changelog.Debian.gz", compressed(entry))
        self.add(f"usr/share/lintian/overrides/{self.name}", "".join(f"{self.name}: {tag}\n" for tag in OVERRIDES[self.name]))

    def build(self, folder: pathlib.Path, *, depends: str, scripts: dict[str, str]) -> pathlib.Path:
        files = sorted(path for path in self.tree.rglob("*") if path.is_file())
        sums = "".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(self.tree)}\n" for path in files)
        configuration = [f"/{path.relative_to(self.tree)}\n" for path in files if path.relative_to(self.tree).parts[0] == "etc"]
        size = sum(path.stat().st_size for path in files) // 1024 + 1
        stanza = next(part for part in (HERE / "control").read_text().split("\n\n") if part.startswith(f"Package: {self.name}\n"))
        first, rest = stanza.strip().replace("${depends}", depends).replace("${version}", self.version).split("\n", 1)
        architecture = said("dpkg", "--print-architecture").strip()
        control = f"{first}\nVersion: {self.version}\nArchitecture: {architecture}\nMaintainer: {MAINTAINER}\nInstalled-Size: {size}\n{rest}\n"
        self.add("DEBIAN/control", control)
        self.add("DEBIAN/md5sums", sums)
        if configuration:
            self.add("DEBIAN/conffiles", "".join(configuration))
        for name, text in scripts.items():
            self.add(f"DEBIAN/{name}", text, mode=0o755)
        moment = self.made.timestamp()
        for path in [*sorted(self.tree.rglob("*"), reverse=True), self.tree]:
            if path.is_dir():
                path.chmod(0o755)
            os.utime(path, (moment, moment))
        out = folder / f"{self.name}_{self.version}_{architecture}.deb"
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", "-Zxz", f"-z{COMPRESSION}", self.tree, out], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": str(int(moment))})
        return out


def library_packages(program: pathlib.Path, folder: pathlib.Path) -> str:
    """The Debian packages of the libraries that the program is linked with, with the versions that it needs."""
    work = folder / "shlibdeps"
    put(work / "debian/control", f"Source: {SERVICE_PACKAGE}\n\nPackage: {SERVICE_PACKAGE}\nArchitecture: any\n")
    text = said("dpkg-shlibdeps", "-O", program, folder=work)
    return next(line for line in text.splitlines() if line.startswith("shlibs:Depends=")).split("=", 1)[1]


def add_pages(package: Package, program: pathlib.Path, commands: list[list[str]]) -> None:
    """The manual page of each command."""
    for words in commands:
        package.add(f"usr/share/man/man1/countersign-{'-'.join(words)}.1.gz", compressed(page(program, *words)))


def add_references(package: Package, program: pathlib.Path, commands: list[list[str]]) -> None:
    """Manual pages, and the completions of three shells."""
    package.add("usr/share/man/man1/countersign.1.gz", compressed(said(program, "man")))
    add_pages(package, program, commands)
    package.add("usr/share/bash-completion/completions/countersign", said(program, "completion", "bash"))
    package.add("usr/share/zsh/vendor-completions/_countersign", said(program, "completion", "zsh"))
    package.add("usr/share/fish/vendor_completions.d/countersign.fish", said(program, "completion", "fish"))


def command_words(program: pathlib.Path) -> list[list[str]]:
    """The words of each command, from the manual page that lists all."""
    commands = said(program, "man").split(".SH COMMANDS\n", 1)[1].split("\n.SH ", 1)[0]
    return [line.replace("\\-", "-").split() for line in re.findall(r"^\.B (.+)$", commands, re.MULTILINE)]


def bill_of_materials(program: pathlib.Path, *, version: str, depends: str, made: datetime.datetime) -> str:
    """What the program consists of, as SPDX 2.3: the parts linked statically, and the packages that it is linked with."""
    swift = said("swift", "--version").split("(")[0].strip().removeprefix("Swift version ")
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    whole = {"SPDXID": f"SPDXRef-{program.name}", "name": program.name, "versionInfo": version, "downloadLocation": "NOASSERTION",
             "filesAnalyzed": False, "checksums": [{"algorithm": "SHA256", "checksumValue": digest}]}
    inside = [{"SPDXID": f"SPDXRef-{name}", "name": name, "versionInfo": swift, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
               "licenseDeclared": licence}
              for name, licence in (("swift-runtime", "Apache-2.0 WITH Swift-exception"),
                                    ("swift-foundation-essentials", "Apache-2.0 WITH Swift-exception"),
                                    ("swift-libdispatch", "Apache-2.0 WITH Swift-exception"))]
    beside = []
    for part in sorted(depends.split(", ")):
        package, _, needed = part.partition(" ")
        # The least that the program needs: what is installed beside it differs between machines.
        beside.append({"SPDXID": f"SPDXRef-{package.replace('+', 'p')}", "name": package, "versionInfo": needed.strip("()") or "any",
                       "downloadLocation": "NOASSERTION", "filesAnalyzed": False})
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": whole["SPDXID"]}]
    relations += [{"spdxElementId": whole["SPDXID"], "relationshipType": kind, "relatedSpdxElement": part["SPDXID"]}
                  for kind, parts in (("STATIC_LINK", inside), ("DYNAMIC_LINK", beside)) for part in parts]
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"{program.name}-{version}",
        "documentNamespace": f"https://countersign.invalid/sbom/{version}/{digest}",
        "creationInfo": {"created": made.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: script/package"]},
        "packages": [whole, *inside, *beside], "relationships": relations}, indent=1) + "\n"


def add_program(package: Package, program: pathlib.Path, *, depends: str) -> None:
    """The program, the documents of its package, and the bill of materials."""
    package.add(f"usr/bin/{program.name}", program.read_bytes(), mode=0o755)
    package.add_documents()
    package.add(f"usr/share/doc/{package.name}/sbom.spdx.json",
                bill_of_materials(program, version=package.version, depends=depends, made=package.made))


def stripped(program: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A copy in a folder of its own, so that it starts no program beside it."""
    copy = folder / f"{program.name}-alone" / program.name
    copy.parent.mkdir()
    shutil.copyfile(program, copy)
    subprocess.run(["strip", "--strip-unneeded", "--remove-section=.comment", "--remove-section=.note", copy], check=True)
    copy.chmod(0o755)
    return copy


def make(program: pathlib.Path, out: pathlib.Path, *, revision: str) -> list[pathlib.Path]:
    made = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH") or said("git", "log", "-1", "--format=%ct")), datetime.UTC)
    version = f"{said(program, 'version').split()[-1]}-{revision}"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server, lab = stripped(program, folder), stripped(program.with_name("countersign-lab"), folder)
        tool, service, development = (Package(each, folder / "trees" / each, version=version, made=made)
                                      for each in (PROGRAM_PACKAGE, SERVICE_PACKAGE, LAB_PACKAGE))
        depends, lab_depends = library_packages(server, folder), library_packages(lab, folder)
        # Of the commands that it shares with the other program, the pages are the same.
        lab_commands = [words for words in command_words(lab) if page(lab, *words) != page(server, *words)]
        add_program(tool, server, depends=depends)
        add_references(tool, server, [words for words in command_words(server) if words not in lab_commands])
        add_program(development, lab, depends=lab_depends)
        add_pages(development, lab, lab_commands)
        for path, source, mode in SERVICE_FILES:
            service.add(path, (HERE / "countersign" / source).read_text(), mode=mode)
        service.add("usr/share/man/man8/countersign-admin.8.gz", compressed((HERE / "countersign/countersign-admin.8").read_text()))
        service.add_documents()
        scripts = {name: (HERE / "countersign" / name).read_text() for name in ("postinst", "prerm", "postrm")}
        return [tool.build(out, depends=depends, scripts={}), service.build(out, depends="", scripts=scripts),
                development.build(out, depends=lab_depends, scripts={})]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--revision", default="1")
    options = parser.parse_args()
    for path in make(options.program.resolve(), options.folder, revision=options.revision):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}")


if __name__ == "__main__":
    main()
