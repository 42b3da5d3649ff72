"""Sign-up, login, signed calls, logout and another password (docs/protocol.md)."""

import hashlib
import hmac
import os
import pathlib

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from . import opaque, pins, sodium
from .channel import Channel, Reply
from .encoding import account_name, decode, encode, password_bytes, transcript
from .errors import ClientError
from .keylife import SendingTime
from .session import OnlyKey, Session, request_key, token
from .setup import Setup
from .signatures import Answer, Request, add_device_signature
from .state import Device, State


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
        self._channel = Channel(setup, self.state)
        self.session = Session(self._channel)

    # Accounts

    def sign_up(self, account: str, password: str) -> None:
        name = account_name(account)
        registration = opaque.Registration(password_bytes(password))
        start = self._channel.ask("/registration/start", {
            "account": name, "request": encode(registration.request)}).members
        finish = self._channel.ask("/registration/finish", {
            "account": name, "handle": start.get("handle"),
            "sealed_record": encode(self._record(registration, start, name))}).members
        if finish.get("account") != name:
            raise ClientError("false-answer", "registration/finish: another account")

    def _record(self, registration: opaque.Registration, start: dict, name: str) -> bytes:
        """OPAQUE's record for the authority alone, sealed to the key that its signed answer brought."""
        response = decode(start.get("response"), 64)
        record = registration.finish(response, name.encode(), self.setup.app.encode())
        associated = transcript("registration", self.setup.app, name, decode(start.get("handle")))
        return seal(record, decode(start.get("registration_key"), 32), associated)

    def _binding(self, device: Device) -> bytes:
        setup = self.setup
        return hashlib.sha256(transcript(
            "login context", setup.release, device.signing_key, device.agreement_key, setup.device_class,
            setup.device_name)).digest()

    def log_in(self, account: str, password: str) -> None:
        name, device, setup = account_name(account), Device(self.state), self.setup
        binding, moment = self._binding(device), self._channel.now()
        login = opaque.Login(password_bytes(password))
        known = transcript("known device", setup.app, name, login.ke1, binding, moment)
        start = self._channel.ask("/login/start", {
            "account": name, "ke1": encode(login.ke1),
            "device": {"signing_key": encode(device.signing_key),
                       "agreement_key": encode(device.agreement_key),
                       "class": setup.device_class, "name": setup.device_name},
            "proof": {"time": moment, "signature": encode(device.sign(known))}}).members
        proof, session_key = self._prove("login", login, start, name, device)
        root = opaque.expand(session_key, b"countersign/1 root", 32)
        reply = self._channel.ask("/login/finish", proof, keys=OnlyKey(request_key(root)))
        values = {"account": name, "id": reply.members.get("session"),
                  "current": {"number": reply.members.get("epoch"), "root": encode(root)}}
        if reply.signer != reply.members.get("token") or reply.signer != token(values, values["current"]):
            raise ClientError("false-answer", "login/finish: not signed with the session's key")
        self.session.begin(values)

    def _prove(self, purpose: str, login: opaque.Login, start: dict, name: str, device: Device,
               *more: bytes) -> tuple[dict, bytes]:
        """The members that finish a login, or what else the password is proved for, and OPAQUE's key."""
        login_id, ke2 = decode(start.get("login_id")), decode(start.get("ke2"), 320)
        binding = self._binding(device)
        finished = login.finish(ke2, name.encode(), self.setup.app.encode(), b"countersign/1" + binding)
        parts = (login_id, login.ke1, ke2, finished.ke3, *more)
        said = transcript(purpose, self.setup.app, name, binding, *parts)
        signature = device.sign(said)
        key = opaque.expand(finished.session_key, b"countersign/1 finish", 32)
        return {"login_id": encode(login_id), "ke3": encode(finished.ke3), "signature": encode(signature),
                "mac": encode(hmac.digest(key, said + signature, "sha256"))}, finished.session_key

    def change_password(self, password: str, new_password: str) -> None:
        login, device = opaque.Login(password_bytes(password)), Device(self.state)
        registration = opaque.Registration(password_bytes(new_password))
        name = self.session.values["account"]
        start = self._ask("/password/start", {
            "ke1": encode(login.ke1), "request": encode(registration.request)}).members
        box = self._record(registration, start, name)
        bound = (decode(self.session.values["id"], 16), hashlib.sha256(box).digest())
        proof, _ = self._prove("password change", login, start, name, device, *bound)
        self._ask("/password/finish", {**proof, "handle": start.get("handle"), "sealed_record": encode(box)})

    def log_out(self) -> None:
        """Where the authority cannot be reached, the session stays: one that only this device has
        forgotten lives on."""
        self._ask("/logout", {})
        self.session.end("signed-out")

    def _ask(self, route: str, members: dict) -> Reply:
        """Asks a route of the authority's own that a session may call, and refreshes once where its token
        has run out."""
        for is_last in (False, True):
            session = self.session
            used = session.token
            try:
                reply = self._channel.ask(route, members, session.key, session.answer_keys)
            except ClientError as error:
                session.heed(error.members.get("signer"), error)
                if is_last or not session.may_refresh(error, used):
                    raise
                session.refresh()
                continue
            if reply.signer != used:
                raise ClientError("false-answer", f"{route}: not signed with the session's key")
            session.heed(reply.signer)
            return reply
        raise AssertionError("unreachable")

    # Calls

    def call(self, method: str, target: str, fields: dict[str, str] | None = None, body: bytes = b"",
             once: bool = False) -> Answer:
        """A signed call of the backend. With `once` it bears an idempotency key, and is sent again under
        the same key where no answer came: it is done once. It is not sent again where the server may have
        forgotten the key meanwhile: the error is `outcome-unknown`."""
        fields = {name.lower(): value for name, value in (fields or {}).items()}
        if once:
            fields["idempotency-key"] = encode(os.urandom(16))
        losses, is_renewed, by_device = 0, False, False
        # When the first copy was sent that may have arrived.
        lost: SendingTime | None = None

        def check() -> None:
            if lost is not None and lost.is_over(self._channel.keys_kept):
                raise ClientError("outcome-unknown", "the server may have forgotten the idempotency key")

        while True:
            sent = SendingTime()
            session = self.session
            used = session.token
            try:
                reply = self._channel.send(method, target, session.key, fields, body, session.answer_keys,
                                           self._countersign if by_device else None, check)
            except ClientError as error:
                losses += 1
                if error.code != "network" or not once or losses > 1:
                    raise
                lost = lost or sent
                continue
            self._channel.note_update(reply)
            refusal = reply.error() if reply.refusal else None
            session.heed(reply.signer, refusal)
            if refusal is None:
                return reply.answer
            if not is_renewed and session_goes_on(self.state) and session.may_refresh(refusal, used):
                is_renewed = True
                session.refresh()
            elif refusal.code == "device-unsigned" and not by_device:
                by_device = True
            else:
                raise refusal

    def _countersign(self, request: Request) -> None:
        add_device_signature(request, self.session.token, self._channel.now(), Device(self.state).sign)

    def update_pins(self) -> int:
        """Fetches the app's pin manifest and takes it up: its version."""
        return pins.update(self._channel)

    def status(self) -> dict:
        values = self.state.values
        result: dict = {"state": "signed-in" if session_goes_on(self.state) else "signed-out"}
        if session_goes_on(self.state):
            kept = self.session.values
            result |= {"account": kept["account"], "session": kept["id"]}
            result["epoch"] = self.session.epoch["number"]
        elif "ended" in values:
            result["reason"] = values["ended"]
        if "update" in values:
            result |= {"state": "update-required", "link": values["update"]}
        return result


def session_goes_on(state: State) -> bool:
    return "session" in state.values
