"""The example of recovery, as its README has it: a mail address is verified by a code, a forgotten password is set anew by another, and
neither tells a stranger who has an account."""

import json
import pathlib
import re
import subprocess
import sys
import time

import pytest

import processes
from authority import Authority
from gateway import ROOT
from person import PASSWORD, Person
from ports import reserve_port
from test_metrics import Administered
from waiting import until


class Shop:
    def __init__(self, folder):
        self.folder, self.mails = folder, folder / "mails"
        self.mails.mkdir(parents=True)
        self.port, self.hook_port = reserve_port(), reserve_port()
        self.gateway = Administered(folder / "gateway", "--upstream", f"http://127.0.0.1:{self.port}").start()
        admin = self.gateway.admin
        admin("app", "add", "demo", "--set", "registration=open")
        admin("route", "set", "demo", "/forgot", "--require", "signed", "--methods", "POST")
        authority = Authority(folder / "authority", "hooks")
        certificate, key = authority.issue("hooks-server")
        url = f"https://localhost:{self.hook_port}/hooks"
        admin("webhook", "add", url, "--app", "demo", "--allow-private", "--ca", authority.path, "--events",
              "account.registered,account.password-changed,account.removed")
        (folder / "hook-keys.json").write_text(admin("webhook", "key", "--json").out)
        (folder / "api-token").write_text(admin("token", "add", "recovery", "--scope", "accounts:verify,accounts:recover").out)
        self.backend = processes.start(
            [sys.executable, "-B", ROOT / "Examples/recovery/backend.py", "--app", "demo", "--port", str(self.port), "--hook-port", str(self.hook_port),
             "--hook-url", url, "--certificate", certificate, "--key", key, "--hook-keys", folder / "hook-keys.json", "--api",
             f"http://127.0.0.1:{self.gateway.admin_port}", "--api-token-file", folder / "api-token", "--database", folder / "recovery.db",
             "--mails", self.mails], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.backend.stdout.readline() == b"ready\n"

    def mail(self, recipient: str, number: int) -> str:
        """The text of that person's mail, counted from 0."""
        def found() -> list[str]:
            texts = [path.read_text() for path in sorted(self.mails.iterdir())]
            return [text for text in texts if f"To: {recipient}" in text]
        until(lambda: len(found()) > number, f"mail {number} for {recipient}")
        return found()[number]

    def mails_before(self, folder: pathlib.Path, name: str = "later") -> int:
        """How many there are before that of a person who signs up now."""
        self.mail(Person(self.gateway, folder / name, f"{name}@mail.example").signs_up().name, 0)
        return len(list(self.mails.iterdir())) - 1

    def close(self) -> None:
        self.backend.kill()
        self.backend.wait()
        self.gateway.stop()


@pytest.fixture
def shop(tmp_path):
    shop = Shop(tmp_path)
    yield shop
    shop.close()


def posts(person: Person, path: str, body: dict) -> int:
    """The status of a call of the app."""
    done = person.run("request", "-X", "POST", "-H", "Content-Type: application/json", "-d", json.dumps(body), "-i", path)
    return int(re.match(r"HTTP/1\.1 (\d+)", done.out)[1])


def test_an_address_is_verified_and_a_password_recovered(shop, tmp_path):
    anna = Person(shop.gateway, tmp_path / "anna", "anna@mail.example").signs_up().logs_in()
    code = re.search(r"\b\d{8}\b", shop.mail(anna.name, 0))[0]
    wrong = f"{(int(code) + 1) % 10**8:08}"
    assert posts(anna, "/verify", {"code": wrong}) == 403
    assert posts(anna, "/verify", {"code": code}) == 200
    assert posts(anna, "/verify", {"code": code}) == 403, "a code is used once"
    # On another device, without a session.
    stranger = Person(shop.gateway, tmp_path / "other", anna.name)
    assert posts(stranger, "/forgot", {"account": anna.name}) == 202
    reset = re.search(r"\b(?:[0-9A-Z]{4}-){4}[0-9A-Z]{4}\b", shop.mail(anna.name, 1))[0]
    done = stranger.run("signup", "--account", anna.name, "--reset-code-stdin", "--password-stdin", stdin=f"{reset}\nanother long password\n")
    assert done.returncode == 0, done.err
    assert "was changed" in shop.mail(anna.name, 2)
    assert stranger.run("login", "--account", anna.name, "--password-stdin", stdin=f"{PASSWORD}\n").returncode == 1
    stranger.logs_in(password="another long password")
    # All sessions from before have ended.
    assert anna.run("request", "/orders").returncode == 1
    database = (tmp_path / "recovery.db").read_bytes() + (shop.gateway.data / "countersign.db").read_bytes()
    assert code.encode() not in database and reset.encode() not in database


def test_a_stranger_learns_nothing(shop, tmp_path):
    unverified = Person(shop.gateway, tmp_path / "berta", "berta@mail.example").signs_up()
    shop.mail(unverified.name, 0)
    for name in (unverified.name, "nobody@mail.example"):
        assert posts(unverified, "/forgot", {"account": name}) == 202
    assert shop.mails_before(tmp_path) == 1
    # Without a live release of the app, nothing reaches the backend.
    port = shop.gateway.port
    assert shop.gateway.send(f"POST /forgot HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 2\r\n\r\n{{}}".encode()).status == 401


def test_other_spellings_and_lists_of_addresses_get_nothing(shop, tmp_path):
    anna = Person(shop.gateway, tmp_path / "anna", "mike@mail.example").signs_up().logs_in()
    code = re.search(r"\b\d{8}\b", shop.mail(anna.name, 0))[0]
    assert posts(anna, "/verify", {"code": code}) == 200
    for name in ("mi\u212ae@mail.example", "Mike@mail.example", "mike@mail.example, x@evil.example", '"mike@mail.example" <x@evil.example>'):
        assert posts(anna, "/forgot", {"account": name}) == 202
    shop.mail(anna.name, 1)
    assert shop.mails_before(tmp_path, "first") == 2, "one code, to the account's own spelling"
    Person(shop.gateway, tmp_path / "list", "a@x.example, b@y.example").signs_up()
    assert shop.mails_before(tmp_path, "second") == 3


def test_a_lost_code_is_sent_again(shop, tmp_path):
    dora = Person(shop.gateway, tmp_path / "dora", "dora@mail.example").signs_up().logs_in()
    first = re.search(r"\b\d{8}\b", shop.mail(dora.name, 0))[0]
    assert posts(dora, "/code", {}) == 202
    second = re.search(r"\b\d{8}\b", shop.mail(dora.name, 1))[0]
    assert posts(dora, "/code", {}) == 202
    # The second code does not replace the first one, which is the one that the person may have found.
    assert posts(dora, "/verify", {"code": first}) == 200 and len(list(shop.mails.iterdir())) == 2
    assert posts(dora, "/verify", {"code": second}) == 403, "with one, the other is used up"


def test_an_account_has_25_wrong_entries(shop, tmp_path):
    carl = Person(shop.gateway, tmp_path / "carl", "carl@mail.example").signs_up().logs_in()
    code = re.search(r"\b\d{8}\b", shop.mail(carl.name, 0))[0]
    for number in range(25):
        assert posts(carl, "/verify", {"code": f"{(int(code) + 1 + number) % 10**8:08}"}) == 403
    assert posts(carl, "/verify", {"code": code}) == 403


def test_a_forged_event_is_refused(shop, tmp_path):
    import ssl
    import urllib.error
    import urllib.request
    context = ssl.create_default_context(cafile=tmp_path / "authority/hooks.pem")
    body = b'{"id":"evt_1","type":"account.registered","account":"name:victim@mail.example"}'
    fields = {"Content-Type": "application/json", "Countersign-Event": "evt_1", "Signature": "countersign=:AAAA:",
              "Signature-Input": 'countersign=("@method" "@target-uri" "content-type" "content-digest" "countersign-event");'
                                 f'created={int(time.time())};keyid="x";alg="ed25519";tag="countersign-webhook"'}
    for more in ({}, {"Signature-Input": ""}):
        request = urllib.request.Request(f"https://localhost:{shop.hook_port}/hooks", body, fields | more)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60, context=context)
        assert refused.value.code == 401
    assert list(shop.mails.iterdir()) == []
