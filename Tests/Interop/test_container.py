"""Packaging/Containerfile, built by buildah without a daemon: from the packages alone, on a Debian of debootstrap in place of the base image,
which would be of a registry. The image's own command then serves as the service's user, and ends on SIGTERM."""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile

import pytest

from needs import machine, missing
from ports import reserve_port
from products import BINARY, ROOT

sys.path.insert(0, str(ROOT / "Packaging"))
import fresh_root  # noqa: E402
import package  # noqa: E402
import processes

CONTAINERFILE = ROOT / "Packaging/Containerfile"
# Building changes owners, which only root may do where users have no subordinate ids.
pytestmark = machine(os.getuid() == 0 and missing("buildah", "debootstrap", "dpkg-deb") is None, "root, and a builder")

# Runs the image's command, says as whom, and ends it as the image says when the standard input ends.
SUPERVISOR = 'id -un; stat -c "%U %a" /var/lib/countersign; signal=$1; shift; "$@" & read line; kill -s "$signal" $!; wait $!; echo "status $?"'


class Builder:
    """buildah, with images and containers in a folder of its own, and no registry."""

    def __init__(self, folder: pathlib.Path):
        (folder / "registries.conf").write_text("unqualified-search-registries = []\n")
        self.policy = folder / "policy.json"
        self.policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        self.command = ["buildah", "--root", str(folder / "images"), "--runroot", str(folder / "run"), "--storage-driver", "vfs",
                        "--registries-conf", str(folder / "registries.conf")]

    def run(self, *arguments: object) -> str:
        done = subprocess.run([*self.command, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout.strip()

    def base(self, root: pathlib.Path, name: str) -> None:
        """An image of a folder, by the name that a Containerfile begins from."""
        container = self.run("from", "--signature-policy", self.policy, "scratch")
        self.run("add", "--quiet", container, root, "/")
        self.run("commit", "--quiet", "--rm", "--signature-policy", self.policy, container, f"docker.io/library/{name}")


@pytest.fixture(scope="module")
def built():
    """The builder, and the image's settings."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="countersign-container-"))
    try:
        builder = Builder(folder)
        name = next(line.split()[1] for line in CONTAINERFILE.read_text().splitlines() if line.startswith("FROM "))
        builder.base(fresh_root.Root(folder / "base").folder, name)
        packages = folder / "packages"
        packages.mkdir()
        package.make(pathlib.Path(BINARY), packages, revision="1")
        builder.run("bud", "--isolation", "chroot", "--pull-never", "--signature-policy", builder.policy, "-t", "countersign",
                    "-f", CONTAINERFILE, packages)
        yield builder, json.loads(builder.run("inspect", "--type", "image", "localhost/countersign"))["OCIv1"]["config"]
    finally:
        shutil.rmtree(folder)


def test_the_image_is_as_the_pages_say(built):
    _, image = built
    assert image["User"] == "countersign" and image["Volumes"] == {"/var/lib/countersign": {}} and "8443/tcp" in image["ExposedPorts"]


def test_its_command_serves_and_ends(built):
    builder, image = built
    port = reserve_port()
    container = builder.run("from", "--pull-never", "--signature-policy", builder.policy, "localhost/countersign")
    process = processes.start(
        [*builder.command, "run", "--isolation", "chroot", "--env", f"COUNTERSIGN_LISTEN=127.0.0.1:{port}", "--env",
         "COUNTERSIGN_ADMIN=127.0.0.1:0", container, "--", "sh", "-c", SUPERVISOR, "sh", image["StopSignal"].removeprefix("SIG"),
         *image["Entrypoint"], *image["Cmd"]],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = [process.stdout.readline().strip() for _ in range(3)]
        assert said == ["countersign", "countersign 700", f"listening on https://127.0.0.1:{port}"], (said, process.poll())
        statuses = []
        for path in ("/countersign/v1/health", "/"):
            # Its certificate is made at the first start, inside.
            with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", port, timeout=60,
                                                                context=ssl._create_unverified_context())) as connection:
                connection.request("GET", path)
                statuses.append(connection.getresponse().status)
        assert statuses[0] == 200 and statuses[1] in (401, 404), statuses
        out, err = process.communicate("end\n", timeout=60)
        assert out.splitlines()[-1] == "status 0" and '"log"' in err, out + err
    finally:
        process.kill()
        process.wait()
