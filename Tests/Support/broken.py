"""A server with planted faults, and an attacker's changes to its requests."""

import base64
import json
import pathlib

from backend import Backend
from clock import Clock
from gateway import Gateway
from l5_client import OldClient, kept
from person import Person
from products import BREAKABLE
from signing import ReleaseKey
from unsealing import ROOT, request_key, vault


class Breakable(Gateway):
    """Over plain HTTP, with the app `demo` and a release in front of a backend; with or without the fault, of the program that can have one."""

    binary = BREAKABLE

    def __init__(self, folder: pathlib.Path, backend: Backend, *options: object):
        super().__init__(folder, "--tls", "off", "--upstream", backend.url, *options, clock=Clock(folder))
        self.backend = backend

    def prepared(self) -> "Breakable":
        self.add_app("demo", registration="open", token_lifetime="2s", schemes="message-signatures,auth-v4",
                     legacy_login="on", legacy_key="key")
        self.key = self.add_release()
        return self

    def takes(self, request: bytes) -> bool:
        return self.send(request).status == 200

    def person(self) -> Person:
        return Person(self, self.folder / "alice").signs_up().logs_in()

    def old_accounts(self, rung: str) -> OldClient:
        """With the account `known`, whose password is `right`."""
        row = {"name": "known", "user_id": 7, "rung": rung, "value": kept(rung, "right", "", "key")}
        self.admin("account", "import", "demo", "-", stdin=json.dumps(row))
        return OldClient(self.url)


def with_mac(request: bytes, change) -> bytes:
    before, rest = request.split(b"Signature: app=:", 1)
    text, after = rest.split(b":", 1)
    return before + b"Signature: app=:" + base64.b64encode(change(base64.b64decode(text))) + b":" + after


def code(answer) -> str | None:
    return json.loads(answer.body)["code"] if answer.status >= 400 else None


def stolen(server: Breakable, person: Person) -> ReleaseKey:
    """The session's key of its first epoch, as an attacker copies it from the device's memory."""
    root = vault(pathlib.Path(person.profile))[ROOT]
    secret = base64.urlsafe_b64encode(request_key(root)).decode().rstrip("=")
    return ReleaseKey(f"s_{person.status()['session']}.0", secret, f"127.0.0.1:{server.port}", person.release["key_id"])
