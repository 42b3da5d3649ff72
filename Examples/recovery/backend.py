"""A backend that verifies its users' mail addresses and lets them set a forgotten password, with Countersign's webhooks and admin API.

The name of an account is its mail address. See README.md for the commands."""

import argparse
import base64
import datetime
import email.message
import hashlib
import http.server
import json
import pathlib
import queue
import re
import smtplib
import sqlite3
import ssl
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

# One bare address: the name of an account may be any text, and a mailer reads lists and display names out of it.
ADDRESS = re.compile(r"[a-z0-9][a-z0-9._+-]{0,63}@(?:[a-z0-9-]{1,63}\.)+[a-z]{2,63}")
COMPONENTS = ["@method", "@target-uri", "content-type", "content-digest", "countersign-event"]
# Seconds.
OLDEST_DELIVERY, PAUSE_OF_MAILS = 300, 60
MOST_BODY = 65536


class Refused(Exception):
    """A request that is answered with that status."""

    def __init__(self, status: int, reason: str):
        super().__init__(reason)
        self.status = status


class Webhooks:
    """Verifies deliveries. Source: RFC 9421, RFC 9530."""

    def __init__(self, url: str, keys: dict):
        self.url = url
        self.keys = {key["kid"]: Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "=="))
                     for key in keys["keys"]}

    def event(self, path: str, fields: dict[str, str], body: bytes) -> dict:
        parameters = fields.get("signature-input", "").removeprefix("countersign=")
        found = re.fullmatch(r'\(([^()]*)\);created=(\d+);keyid="([\w-]+)";alg="ed25519";tag="countersign-webhook"', parameters)
        signature = re.fullmatch(r"countersign=:([A-Za-z0-9+/=]+):", fields.get("signature", ""))
        if not found or not signature or found[1] != " ".join(f'"{name}"' for name in COMPONENTS):
            raise Refused(401, "the signature has another form")
        if abs(time.time() - int(found[2])) > OLDEST_DELIVERY or found[3] not in self.keys:
            raise Refused(401, "the signature is old, or of an unknown key")
        digest = "sha-256=:" + base64.b64encode(hashlib.sha256(body).digest()).decode() + ":"
        if fields.get("content-digest") != digest or urllib.parse.urlsplit(self.url).path != path:
            raise Refused(401, "the body or the path is another")
        values = {"@method": "POST", "@target-uri": self.url, **fields}
        base = "".join(f'"{name}": {values.get(name, "")}\n' for name in COMPONENTS) + f'"@signature-params": {parameters}'
        try:
            self.keys[found[3]].verify(base64.b64decode(signature[1]), base.encode())
        except InvalidSignature:
            raise Refused(401, "the signature does not verify") from None
        return json.loads(body)


class Authority:
    """The admin API, with a token of the scopes accounts:verify and accounts:recover."""

    def __init__(self, url: str, token: str, app: str):
        self.url, self.token, self.app = url, token, app

    def _post(self, account: str, place: str, body: dict) -> dict | None:
        """None if there is no such account (404), or if it is locked or not verified (409)."""
        path = f"/api/v1/apps/{self.app}/accounts/{urllib.parse.quote(account, safe='')}/{place}"
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {
            "Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in (404, 409):
                return None
            raise

    def verification_code(self, account: str) -> str | None:
        made = self._post(account, "codes", {"purpose": "verify", "valid": "1h"})
        return made and made["code"]

    def verify(self, account: str, code: str) -> bool:
        """Uses the code up. A wrong one costs one of its tries."""
        if not re.fullmatch("[0-9]{8}", code):
            return False
        outcome = self._post(account, "codes/redeem", {"purpose": "verify", "code": code})
        return bool(outcome) and outcome["accepted"]

    def reset_code(self, account: str) -> str | None:
        """A code with which the owner of a verified account sets a new password."""
        made = self._post(account, "reset", {"valid": "30m", "if_verified": True})
        return made and made["reset_code"]


class Mailer:
    """Sends by SMTP, or writes each mail to a file, for tests."""

    def __init__(self, smtp: str | None, folder: pathlib.Path | None):
        self.smtp, self.folder = smtp, folder

    def send(self, recipient: str, subject: str, text: str) -> None:
        mail = email.message.EmailMessage()
        mail["To"], mail["From"], mail["Subject"] = recipient, "accounts@shop.example", subject
        mail["Date"] = datetime.datetime.now(datetime.timezone.utc)
        mail.set_content(text)
        if self.smtp:
            host, _, port = self.smtp.partition(":")
            with smtplib.SMTP(host, int(port or 25), timeout=10) as server:
                server.send_message(mail)
        else:
            (self.folder / f"{time.time_ns()}.eml").write_bytes(bytes(mail))


class Memory:
    """Which events were handled, and when each account was last mailed. Accounts, codes and what is verified are Countersign's."""

    def __init__(self, path: str):
        self.lock = threading.Lock()
        self.database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.database.executescript("""
            CREATE TABLE IF NOT EXISTS handled (event TEXT PRIMARY KEY, at INTEGER NOT NULL);
            CREATE TABLE IF NOT EXISTS mailed (account TEXT PRIMARY KEY, at INTEGER NOT NULL);""")

    def knows(self, event: str) -> bool:
        """Whether the event was handled: deliveries may come twice."""
        with self.lock:
            return self.database.execute("SELECT 1 FROM handled WHERE event = ?", (event,)).fetchone() is not None

    def remember(self, event: str) -> None:
        with self.lock:
            self.database.execute("INSERT OR IGNORE INTO handled VALUES (?, ?)", (event, int(time.time())))

    def may_be_mailed(self, account: str) -> bool:
        """Whether the account had no mail in the last minute; counts this one."""
        now = int(time.time())
        with self.lock:
            return self.database.execute("INSERT INTO mailed VALUES (?1, ?2) ON CONFLICT (account) DO UPDATE SET at = ?2 WHERE at < ?2 - ?3",
                                         (account, now, PAUSE_OF_MAILS)).rowcount == 1

    def forget(self, account: str) -> None:
        with self.lock:
            self.database.execute("DELETE FROM mailed WHERE account = ?", (account,))


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers a POST with what its function returns: a status and a JSON object."""

    timeout = 20

    def do_POST(self) -> None:
        try:
            length = int(self.headers.get("Content-Length", "0"))
            if not 0 <= length <= MOST_BODY:
                raise Refused(413, "the body is too long")
            status, answer = self.server.respond(self.path, {name.lower(): value for name, value in self.headers.items()}, self.rfile.read(length))
        except Refused as error:
            status, answer = error.status, {"error": str(error)}
        except (OSError, smtplib.SMTPException):
            # Of the mail server or of the API. Countersign sends an event again.
            status, answer = 503, {"error": "try again later"}
        except (ValueError, KeyError):
            status, answer = 400, {"error": "the request is malformed"}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Backend:
    def __init__(self, webhooks: Webhooks, authority: Authority, mailer: Mailer, memory: Memory):
        self.webhooks, self.authority, self.mailer, self.memory = webhooks, authority, mailer, memory
        # One at a time, and not more than wait here: the API serves the operators, too.
        self.resets = queue.Queue(maxsize=1_000)
        threading.Thread(target=self.mail_resets, daemon=True).start()

    def hook(self, path: str, fields: dict[str, str], body: bytes) -> tuple[int, dict]:
        """From Countersign, over HTTPS."""
        event = self.webhooks.event(path, fields, body)
        account = event.get("account", "").removeprefix("name:")
        # An endpoint may be told of other apps, whose accounts are other people's.
        if event.get("app") != self.authority.app or not ADDRESS.fullmatch(account):
            return 200, {"handled": "not ours"}
        if self.memory.knows(event["id"]):
            return 200, {"handled": "before"}
        if event["type"] == "account.registered":
            self.mail_code(account)
        elif event["type"] == "account.password-changed":
            self.mailer.send(account, "Your password", "Your password was changed. If that was not you, answer this mail.")
        elif event["type"] == "account.removed":
            self.memory.forget(account)
        # Only now: a mail that could not be sent is tried again with the next delivery.
        self.memory.remember(event["id"])
        return 200, {"handled": event["type"]}

    def mail_code(self, account: str) -> None:
        if code := self.authority.verification_code(account):
            self.mailer.send(account, "Your address", f"Enter this code in the app: {code}")

    def call(self, path: str, fields: dict[str, str], body: bytes) -> tuple[int, dict]:
        """From the app, through the gateway, which says who calls."""
        members = json.loads(body)
        if path == "/verify":
            account = fields["countersign-account"].removeprefix("name:")
            return (200, {"verified": True}) if self.authority.verify(account, str(members["code"])) else (403, {"verified": False})
        if path == "/code":
            account = fields["countersign-account"].removeprefix("name:")
            if ADDRESS.fullmatch(account) and self.memory.may_be_mailed(account):
                self.mail_code(account)
            return 202, {}
        if path == "/forgot":
            # The answer is the same for every name, and comes before the work: it tells nobody who has an account. The spelling of
            # an account's name is in lower case.
            account = str(members["account"]).strip().lower()
            if ADDRESS.fullmatch(account) and not self.resets.full():
                self.resets.put(account)
            return 202, {}
        return 404, {}

    def mail_resets(self) -> None:
        while True:
            try:
                self.mail_reset(self.resets.get())
            except (OSError, smtplib.SMTPException) as error:
                print(f"a reset code was not mailed: {error}", file=sys.stderr)

    def mail_reset(self, account: str) -> None:
        # Against a full mailbox. Countersign has bounds of its own for a day, and no code replaces another.
        if not self.memory.may_be_mailed(account):
            return
        if code := self.authority.reset_code(account):
            self.mailer.send(account, "Your password", f"Set a new password in the app with this code: {code}")
        else:
            self.memory.forget(account)


def serve(port: int, respond, context: ssl.SSLContext | None = None) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.respond = respond
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever).start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--app", default="shop")
    parser.add_argument("--port", type=int, default=8080, help="for the gateway (its --upstream)")
    parser.add_argument("--hook-port", type=int, default=8090, help="for webhooks, over TLS")
    parser.add_argument("--hook-url", required=True, help="as given to `countersign webhook add`")
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--hook-keys", required=True, type=pathlib.Path, help="what `countersign webhook key --json` prints")
    parser.add_argument("--api", default="http://127.0.0.1:8444")
    parser.add_argument("--api-token-file", required=True, type=pathlib.Path)
    parser.add_argument("--database", default="recovery.db")
    parser.add_argument("--smtp", help="HOST:PORT; else mails are written to --mails")
    parser.add_argument("--mails", type=pathlib.Path, default=pathlib.Path("."))
    given = parser.parse_args()
    backend = Backend(
        Webhooks(given.hook_url, json.loads(given.hook_keys.read_text())),
        Authority(given.api, given.api_token_file.read_text().strip(), given.app), Mailer(given.smtp, given.mails),
        Memory(given.database))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(given.certificate, given.key)
    serve(given.hook_port, backend.hook, context)
    serve(given.port, backend.call)
    print("ready", flush=True)


if __name__ == "__main__":
    main()
