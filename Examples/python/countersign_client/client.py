"""Sign-up, login, refresh, signed calls and logout (docs/protocol.md).

Only what the server has signed, and bound to the request that it answers, changes anything here."""

import hashlib
import hmac
import json
import os
import pathlib
import time
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from . import opaque, sodium, transport
from .encoding import account_name, decode, encode, password_bytes, transcript
from .errors import ClientError
from .setup import Setup
from .signatures import AUTHORITY, Answer, Key, Request, sign, verify
from .state import Device, State


@dataclass(frozen=True)
class Reply:
    """An answer, and the id of the key that signed it; None where nothing vouches for it."""

    answer: Answer
    signer: str | None

    @property
    def members(self) -> dict:
        try:
            members = json.loads(self.answer.body)
        except ValueError:
            return {}
        return members if isinstance(members, dict) else {}

    @property
    def refusal(self) -> str | None:
        """The code of a refusal that the server has signed. A copy of an earlier answer says what was so then."""
        if self.signer is None or self.answer.status < 400 or "countersign-replayed" in self.answer.fields:
            return None
        code = self.members.get("code")
        return code if isinstance(code, str) else None


def request_key(root: bytes) -> bytes:
    return opaque.hkdf(root, b"countersign/1 request")


def next_root(root: bytes, agreed: bytes) -> bytes:
    return opaque.hkdf(root + agreed, b"countersign/1 ratchet")


def seal(message: bytes, receiver: bytes, associated: bytes) -> bytes:
    """A sealed box to an X25519 key (docs/protocol.md, "Sign-up")."""
    ephemeral = X25519PrivateKey.generate()
    public = ephemeral.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    product = ephemeral.exchange(X25519PublicKey.from_public_bytes(receiver))
    key = opaque.hkdf(product, b"countersign/1 sealed box" + public + receiver)
    return public + sodium.xchacha20_poly1305_seal(key, message, associated)


class Client:
    def __init__(self, setup: Setup, state_file: pathlib.Path):
        self.setup, self.state = setup, State(state_file)

    # Time

    def _now(self) -> int:
        """The server's time as far as it is known, else the device's; whole Unix seconds."""
        return int(time.time()) + self.setup.clock_offset + self.state.values.get("behind", 0)

    def _learn(self, server_time: object, asked: float) -> bool:
        """Takes up the time of a signed answer, where it came within 5 s by a clock that nobody sets."""
        if not isinstance(server_time, int) or time.monotonic() - asked > 5:
            return False
        self.state.save(behind=server_time - int(time.time()) - self.setup.clock_offset)
        return True

    # Requests

    def _send(self, method: str, target: str, key: Key, fields: dict[str, str], body: bytes,
              keys: dict[str, bytes]) -> Reply:
        """Signs and sends. The first `stale` corrects the clock, and the request is signed anew and sent once more."""
        for is_last in (False, True):
            request = Request(method, target, self.setup.authority, dict(fields), body)
            sign(request, key, self._now())
            asked = time.monotonic()
            answer = transport.exchange(request, self.setup)
            reply = Reply(answer, verify(answer, request, self.setup.authority_key, keys))
            if reply.refusal != "stale" or is_last or not self._learn(reply.members.get("time"), asked):
                return reply
        raise AssertionError("unreachable")

    def _ask(self, route: str, members: dict, key: Key | None = None, keys: dict[str, bytes] | None = None) -> Reply:
        """Asks a route of the authority's own. Its answer is signed, or it is none."""
        release = Key(self.setup.release, self.setup.secret, self.setup.release)
        reply = self._send("POST", self.setup.prefix + route, key or release, {"content-type": "application/json"},
                           json.dumps(members).encode(), {} if keys is None else keys)
        if reply.signer is None:
            raise ClientError("false-answer", f"{route}: the answer is not signed")
        if reply.refusal is not None:
            self._note_update(reply)
            raise ClientError(reply.refusal, str(reply.members.get("detail", "")), **_said(reply))
        if reply.answer.status != 200:
            raise ClientError("false-answer", f"{route}: status {reply.answer.status}")
        self._note_update(reply)
        return reply

    def _note_update(self, reply: Reply) -> None:
        link = reply.members.get("update_url", "") if reply.refusal == "update-required" else None
        if link != self.state.values.get("update"):
            self.state.save(update=link)

    # Accounts

    def sign_up(self, account: str, password: str) -> None:
        name, typed = account_name(account), password_bytes(password)
        registration = opaque.Registration(typed)
        start = self._ask("/registration/start", {"account": name, "request": encode(registration.request)}).members
        handle = decode(start.get("handle"))
        record = registration.finish(decode(start.get("response"), 64), name.encode(), self.setup.app.encode())
        associated = transcript("registration", self.setup.app, name, handle)
        box = seal(record, decode(start.get("registration_key"), 32), associated)
        finish = self._ask("/registration/finish", {
            "account": name, "handle": encode(handle), "sealed_record": encode(box)}).members
        if finish.get("account") != name:
            raise ClientError("false-answer", "registration/finish: another account")

    def log_in(self, account: str, password: str) -> None:
        name, typed, device, setup = account_name(account), password_bytes(password), Device(self.state), self.setup
        binding = hashlib.sha256(transcript(
            "login context", setup.release, device.signing_key, device.agreement_key, setup.device_class,
            setup.device_name)).digest()
        login = opaque.Login(typed)
        proved = self._now()
        known = transcript("known device", setup.app, name, login.ke1, binding, proved)
        start = self._ask("/login/start", {
            "account": name, "ke1": encode(login.ke1),
            "device": {"signing_key": encode(device.signing_key), "agreement_key": encode(device.agreement_key),
                       "class": setup.device_class, "name": setup.device_name},
            "proof": {"time": proved, "signature": encode(device.sign(known))}}).members
        login_id, ke2 = decode(start.get("login_id")), decode(start.get("ke2"), 320)
        finished = login.finish(ke2, name.encode(), setup.app.encode(), b"countersign/1" + binding)
        said = transcript("login", setup.app, name, binding, login_id, login.ke1, ke2, finished.ke3)
        signature = device.sign(said)
        finish_key = opaque.expand(finished.session_key, b"countersign/1 finish", 32)
        root = opaque.expand(finished.session_key, b"countersign/1 root", 32)
        reply = self._ask("/login/finish", {
            "login_id": encode(login_id), "ke3": encode(finished.ke3), "signature": encode(signature),
            "mac": encode(hmac.digest(finish_key, said + signature, "sha256"))}, keys=_OnlyKey(request_key(root)))
        members = reply.members
        session = {"account": name, "id": members.get("session"),
                   "current": {"number": members.get("epoch"), "root": encode(root)}}
        if reply.signer != members.get("token") or reply.signer != _token(session, session["current"]):
            raise ClientError("false-answer", "login/finish: not signed with the session's key")
        self.state.save(session=session, ended=None)

    def log_out(self) -> None:
        session = self.state.session
        epoch = session.get("successor") or session["current"]
        reply = self._ask_in_session("/logout", {})
        if reply.signer != _token(session, epoch):
            raise ClientError("false-answer", "logout: not signed with the session's key")
        self._end("signed-out")

    def _ask_in_session(self, route: str, members: dict) -> Reply:
        """Asks a route of the authority's own that a session may call, and refreshes once where its token has run out."""
        for is_last in (False, True):
            epoch = self._epoch()
            try:
                return self._ask(route, members, self._session_key(epoch), self._answer_keys())
            except ClientError as error:
                self._confirm(error.members.get("signer"))
                if error.code == "session-ended":
                    self._end_by(error.members)
                if error.code != "token-expired" or is_last or not self._is_own_word(error.members, epoch):
                    raise
                self.refresh()
        raise AssertionError("unreachable")

    # Calls

    def call(self, method: str, target: str, fields: dict[str, str] | None = None, body: bytes = b"",
             once: bool = False) -> Answer:
        """A signed call of the backend. With `once` it bears an idempotency key, and is sent again under the same key where
        no answer came: it is done once."""
        fields = {name.lower(): value for name, value in (fields or {}).items()}
        if once:
            fields["idempotency-key"] = encode(os.urandom(16))
        losses, renewed = 0, 0
        while True:
            epoch = self._epoch()
            try:
                reply = self._send(method, target, self._session_key(epoch), fields, body, self._answer_keys())
            except ClientError as error:
                losses += 1
                if error.code != "network" or not once or losses > 1:
                    raise
                continue
            self._confirm(reply.signer)
            code, own = reply.refusal, self._is_own_word({"signer": reply.signer}, epoch)
            if code == "token-expired" and own and renewed == 0:
                renewed += 1
                self.refresh()
            elif code in ("unknown-key", "bad-signature") and self.state.session.get("successor") and renewed == 0:
                # It may be honest and about a request that somebody changed: the epoch before tells.
                renewed += 1
                self.refresh()
            elif code is not None:
                self._note_update(reply)
                if code == "session-ended":
                    self._end_by(_said(reply))
                raise ClientError(code, str(reply.members.get("detail", "")), **_said(reply))
            else:
                return reply.answer

    # The session

    def _epoch(self) -> dict:
        session = self.state.session
        return session.get("successor") or session["current"]

    def _session_key(self, epoch: dict) -> Key:
        return Key(_token(self.state.session, epoch), request_key(decode(epoch["root"], 32)), self.setup.release)

    def _answer_keys(self) -> dict[str, bytes]:
        session = self.state.session
        epochs = [session["current"], session.get("successor")]
        return {_token(session, epoch): request_key(decode(epoch["root"], 32)) for epoch in epochs if epoch}

    def _is_own_word(self, said: dict, epoch: dict) -> bool:
        """Whether a refusal was signed with the session's key. Under the authority's, the same word may be about what
        somebody has added to the request on its way."""
        return said.get("signer") == _token(self.state.session, epoch)

    def _end_by(self, said: dict) -> None:
        """Without a reason no session has ended: the route needs one."""
        if said.get("reason") and said.get("signer") in self._answer_keys():
            self._end(str(said["reason"]))

    def _end(self, reason: str) -> None:
        self.state.save(session=None, ended=reason)

    def _confirm(self, signer: str | None) -> None:
        """What the successor's key has signed shows that the server has it: the epoch before is over."""
        session = self.state.session
        successor = session.get("successor")
        if successor and signer == _token(session, successor):
            self.state.save(session={"account": session["account"], "id": session["id"], "current": successor})

    def refresh(self) -> None:
        """Leaves the session's epoch for the next one. A lost answer is asked for by the same attempt, at another time,
        now or whenever this is called again: the attempt is kept before it is sent (docs/protocol.md, "Refresh")."""
        losses, replays = 0, 0
        while True:
            try:
                return self._refresh_once()
            except ClientError as error:
                losses += error.code in ("network", "false-answer")
                replays += error.code == "replayed"
                if error.code == "session-ended":
                    self._end_by(error.members)
                if error.code not in ("network", "false-answer", "replayed") or losses > 1:
                    raise
                if replays > 1:
                    return self._go_on_with_successor()

    def _refresh_once(self) -> None:
        session = dict(self.state.session)
        # Where the successor is in use already, it is the one to leave.
        current, setup = session["current"], self.setup
        attempt = decode(session["attempt"], 16) if "attempt" in session else os.urandom(16)
        moment = max(self._now(), session.get("attempt_time", 0) + 1)
        session |= {"attempt": encode(attempt), "attempt_time": moment}
        self.state.save(session=session)
        key = request_key(decode(current["root"], 32))
        said = transcript("refresh", setup.app, setup.release, decode(session["id"], 16), current["number"], attempt,
                          moment)
        token = _token(session, current)
        reply = self._ask("/token", {
            "token": token, "attempt": encode(attempt), "time": moment,
            "mac": encode(hmac.digest(key, said, "sha256")),
            "signature": encode(Device(self.state).sign(said))}, keys=self._answer_keys())
        members = reply.members
        agreed = Device(self.state).agree(decode(members.get("ephemeral"), 65))
        successor = {"number": current["number"] + 1, "root": encode(next_root(decode(current["root"], 32), agreed))}
        if reply.signer != token or members.get("token") != _token(session, successor):
            raise ClientError("false-answer", "token: not the next epoch, signed with the session's key")
        self.state.save(session={**session, "successor": successor})

    def _go_on_with_successor(self) -> None:
        """Twice `replayed`, with two times: the successor is in use."""
        session = self.state.session
        if "successor" not in session:
            raise ClientError("replayed", "the attempt was followed, and not by this client")
        self.state.save(session={"account": session["account"], "id": session["id"], "current": session["successor"]})

    def renew(self) -> None:
        """Refreshes on request: from the epoch that is in use, where a call has confirmed it."""
        session = self.state.session
        if session.get("successor"):
            # Its first use tells the server, and its signed answer this client, that the epoch before is over.
            self._confirm_by_asking()
        self.refresh()

    def _confirm_by_asking(self) -> None:
        epoch = self._epoch()
        reply = self._send("GET", self.setup.prefix + "/session", self._session_key(epoch), {}, b"",
                           self._answer_keys())
        self._confirm(reply.signer)

    def status(self) -> dict:
        values = self.state.values
        result: dict = {"state": "signed-in" if "session" in values else "signed-out"}
        if "session" in values:
            result |= {"account": values["session"]["account"], "session": values["session"]["id"],
                       "epoch": self._epoch()["number"]}
        elif "ended" in values:
            result["reason"] = values["ended"]
        if "update" in values:
            result |= {"state": "update-required", "link": values["update"]}
        return result


def _token(session: dict, epoch: dict) -> str:
    return f"s_{session['id']}.{epoch['number']}"


def _said(reply: Reply) -> dict:
    """What a refusal says besides its code, and who has signed it."""
    names = ("reason", "at", "by", "update_url", "retry_after")
    return {"signer": reply.signer, **{name: reply.members[name] for name in names if name in reply.members}}


class _OnlyKey(dict):
    """The key of a session whose token is not known yet: the answer names it."""

    def __init__(self, key: bytes):
        super().__init__()
        self._key = key

    def get(self, key_id: str, default: object = None) -> object:
        return self._key if key_id != AUTHORITY and key_id.startswith("s_") else default
