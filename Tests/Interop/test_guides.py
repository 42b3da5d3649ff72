"""Every command that the README and the guides print runs as it is printed: each page has a deployment of its own, and its blocks of
shell run in order. A block that cannot run here has a comment with the reason before it; those are counted. docs/move-in.md has
test_move_in.py, and two blocks of docs/start.md have test_readme.py, which check more than the exit status."""

import json
import os
import re
import subprocess
import time

import pytest

from gateway import ROOT, Gateway, run

PAGES = sorted(str(path.relative_to(ROOT)) for path in [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/operate").glob("*.md")])
# A fence may be indented in a list.
FENCE = re.compile(r"(?:^ *<!-- not run: (?P<reason>[^\n]+) -->\n)?^(?P<indent> *)```(?P<kind>\w*)\n(?P<text>.*?)^ *```$", re.M | re.S)
# What test_readme.py and test_move_in.py run.
ELSEWHERE = {"docs/start.md": ("openssl dgst", "countersign signup"), "docs/move-in.md": ("countersign",)}
# Blocks that no test of this file runs, each for the reason that it gives.
NOT_RUN = 40
COMMAND = re.compile(r"^\s*(?:\$ )?(?:countersign|script/\w+|python3|curl) ", re.M)


def blocks(page: str, *, with_reason: bool = False) -> list[str]:
    """The blocks of shell of a page that are to be run here, or those that are not."""
    text = (ROOT / page).read_text()
    found = [each for each in FENCE.finditer(text) if each["kind"] == "sh" and bool(each["reason"]) == with_reason]
    return [each["text"] for each in found if not any(words in each["text"] for words in ELSEWHERE.get(page, ()))]


class Deployment:
    """An app `shop` with two releases, an app `demo`, and the files that the pages name; a server runs on it."""

    def __init__(self, folder, *, is_new: bool):
        self.folder, self.gateway = folder, Gateway(folder / "gateway")
        admin = self.gateway.admin
        if not is_new:
            admin("app", "add", "shop", "--require", "signed", "--set", "schemes=message-signatures,form-md5", "--set",
                  "timezone=+08:00", "--set", "legacy-host=api.example.com")
            admin("release", "add", "shop", "--platform", "ios", "--version", "0.9", "--scheme", "form-md5", "--key-id",
                  "THEIR_APP_ID", "--secret-stdin", stdin="their secret")
        admin("app", "add", "demo", "--require", "signed")
        self.made = json.loads(admin("release", "add", "demo" if is_new else "shop", "--platform", "ios", "--version", "1.0",
                                     "--json").out)
        now = int(time.time())
        for name, text in {
            "key.txt": self.made["secret"], "secret.txt": self.made["secret"], "their-private-key": "their secret",
            "accounts.csv": "name,user_id,rung,value\nanna,7,md5,5ebe2294ecd0e0f08eab7690d2a6ee69\n",
            "zh.json": '{"-100": "请重新登录"}', "en.json": '{"-100": "Please sign in again"}',
            "manifest.json": json.dumps({
                "app": "shop", "version": 1, "not_before": now - 60, "not_after": now + 3600,
                "hosts": [{"pattern": "**.example.com", "pins": [f"sha256/{'A' * 43}="], "backups": [f"sha256/{'E' * 43}="]}]}),
        }.items():
            (folder / name).write_text(text)
        key = ("--scheme", "message-signatures", "--key-id", self.made["key_id"], "--secret-file", folder / "key.txt")
        (folder / "request.http").write_bytes(
            run("sign", *key, stdin="GET /orders HTTP/1.1\r\nHost: api.example.com\r\n\r\n").stdout)
        explained = json.loads(run("explain", *key, "--json", stdin=(folder / "request.http").read_bytes()).out)
        base, = [each["text"] for each in explained["stages"] if each.get("name") == "string to sign"]
        (folder / "base.txt").write_text(base)
        self.gateway.start()
        certificate = self.gateway.data / "tls/certificate.pem"
        done = run("profile", "add", folder / "demo", "--url", self.gateway.url, "--ca", certificate, "--key-id",
                   self.made["key_id"], "--secret-stdin", stdin=self.made["secret"])
        assert done.returncode == 0, done.err
        self.stands_for = {
            "https://gate.example.com": f"{self.gateway.url} --ca {certificate}", "/var/lib/countersign": str(self.gateway.data),
            ".build/serve/countersign": "countersign", "COUNTERSIGN_DATA=.countersign": f"COUNTERSIGN_DATA={self.gateway.data}",
            ".countersign/demo": str(folder / "demo"), "AUTHORITY_KEY": self.made["authority_key"],
            "KEY_ID": self.made["key_id"],
        }

    def run(self, block: str) -> str:
        for printed, real in self.stands_for.items():
            block = block.replace(printed, real)
        # A server of its own would not end: what it would start with is read and printed.
        block = re.sub(r"^(countersign serve .*)$", r"\1 --print-config", block, flags=re.M)
        script = f'set -e\ncountersign() {{ "{self.gateway.binary}" "$@"; }}\n{block}'
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "COUNTERSIGN_DATA": str(self.gateway.data)})
        assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
        for name, pattern in {"PUBLIC_KEY": r"^public_key +(\S+)$", "NUMBER:TAG": r"^head: (\S+)$"}.items():
            if found := re.search(pattern, done.stdout, re.M):
                self.stands_for[name] = found[1]
        return done.stdout


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_the_commands_of(page, tmp_path):
    deployment = Deployment(tmp_path, is_new=page == "docs/start.md")
    try:
        for block in blocks(page):
            deployment.run(block)
    finally:
        deployment.gateway.stop()


def test_blocks_that_are_not_run_are_counted():
    assert sum(len(blocks(page, with_reason=True)) for page in PAGES) == NOT_RUN


def test_commands_stand_in_blocks_of_shell():
    for page in PAGES:
        for each in FENCE.finditer((ROOT / page).read_text()):
            if each["kind"] != "sh":
                assert not COMMAND.search(each["text"]), f"{page}: {each['text']}"
