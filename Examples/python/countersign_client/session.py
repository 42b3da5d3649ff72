"""A device's session: its epochs, their keys, the refresh that leads from one to the next, and its end."""

import hashlib
import hmac
import os

from . import opaque
from .channel import Channel
from .encoding import decode, encode, transcript
from .errors import ClientError
from .signatures import AUTHORITY, Key
from .state import Device


def request_key(root: bytes) -> bytes:
    return opaque.hkdf(root, b"countersign/1 request")


def next_root(root: bytes, agreed: bytes) -> bytes:
    return opaque.hkdf(root + agreed, b"countersign/1 ratchet")


def token(session: dict, epoch: dict) -> str:
    return f"s_{session['id']}.{epoch['number']}"


class OnlyKey(dict):
    """The key of a session whose token is not known yet: the answer names it."""

    def __init__(self, key: bytes):
        super().__init__()
        self._key = key

    def get(self, key_id: str, default: object = None) -> object:
        return self._key if key_id != AUTHORITY and key_id.startswith("s_") else default


class Session:
    """What is kept of it is in the state, under `session`; see `State`."""

    def __init__(self, channel: Channel):
        self._channel, self._state, self._setup = channel, channel.state, channel.setup

    @property
    def values(self) -> dict:
        return self._state.session

    @property
    def epoch(self) -> dict:
        """The one that requests are signed under: the newest."""
        return self.values.get("successor") or self.values["current"]

    @property
    def token(self) -> str:
        return token(self.values, self.epoch)

    @property
    def key(self) -> Key:
        return Key(self.token, request_key(decode(self.epoch["root"], 32)), self._setup.release)

    @property
    def answer_keys(self) -> dict[str, bytes]:
        epochs = [self.values["current"], self.values.get("successor")]
        return {token(self.values, one): request_key(decode(one["root"], 32)) for one in epochs if one}

    def begin(self, values: dict) -> None:
        self._state.save(session=values, ended=None)

    def end(self, reason: str) -> None:
        self._state.save(session=None, ended=reason)

    def heed(self, signer: str | None, refusal: ClientError | None = None) -> None:
        """Processes the key that signed an answer, and the refusal in it. An answer signed with the
        successor's key shows that the server has that key: the earlier epoch is over. Only an answer signed
        with the session's own key ends the session: one under the authority's key may refuse a request that
        an attacker changed."""
        values = self.values
        is_own = signer in self.answer_keys
        if "successor" in values and signer == token(values, values["successor"]):
            self._go_on_with_successor()
        if refusal and refusal.code == "session-ended" and refusal.members.get("reason") and is_own:
            self.end(str(refusal.members["reason"]))

    def may_refresh(self, refusal: ClientError, used: str) -> bool:
        """Whether a refresh can help after this refusal of the token that was used. A refusal of the
        successor may be genuine and concern a request that an attacker changed: a refresh from the earlier
        epoch finds out."""
        if refusal.code == "token-expired":
            return refusal.members.get("signer") == used
        return refusal.code in ("unknown-key", "bad-signature") and "successor" in self.values

    def refresh(self) -> None:
        """Leaves the session's epoch for the next one. A lost answer is asked for by the same attempt, at
        another time, now or whenever this is called again: the attempt is kept before it is sent
        (docs/protocol.md, "Refresh")."""
        losses, replays = 0, 0
        while True:
            try:
                return self._refresh_once()
            except ClientError as error:
                losses += error.code in ("network", "false-answer")
                replays += error.code == "replayed"
                if error.code == "replayed" and self._heed_progress(error):
                    return
                if error.code not in ("network", "false-answer", "replayed") or losses > 1:
                    self.heed(error.members.get("signer"), error)
                    raise
                if losses + replays > 3:
                    raise

    def _heed_progress(self, error: ClientError) -> bool:
        """What a refused copy says of the session's progress: true if the stored successor is in use. If the
        session has come further than this device has ever asked, another holder of its keys did that: the
        refresh that follows says so, and ends the session."""
        values, said = self.values, error.members
        if said.get("transcript") != self._said or not all(
                type(said.get(name)) is int for name in ("counter", "epoch")):
            return False
        latest = values.get("successor", values["current"])["number"]
        if said["counter"] > values.get("counter", 0) or said["epoch"] > latest:
            if values.get("reuse"):
                raise error
            # Kept, so that each refresh says so until it is answered.
            self._state.save(session={**values, "reuse": True})
            return False
        if said["epoch"] == values["current"]["number"] + 1:
            self._go_on_with_successor()
            return True
        return False

    def _refresh_once(self) -> None:
        values, setup, device = dict(self.values), self._setup, Device(self._state)
        current = values["current"]
        attempt = decode(values["attempt"], 16) if "attempt" in values else os.urandom(16)
        moment = max(self._channel.now(), values.get("attempt_time", 0) + 1)
        counter = values.get("counter", 0) + 1
        values |= {"attempt": encode(attempt), "attempt_time": moment, "counter": counter}
        self._state.save(session=values)
        root, left = decode(current["root"], 32), token(values, current)
        purpose, nonce = "report-reuse" if values.get("reuse") else "renew", os.urandom(16)
        said = transcript("refresh-2", setup.app, setup.release, decode(values["id"], 16),
                          current["number"], attempt, moment, counter, nonce, purpose)
        self._said = encode(hashlib.sha256(said).digest())
        reply = self._channel.ask("/token", {
            "token": left, "attempt": encode(attempt), "time": moment,
            "counter": counter, "nonce": encode(nonce), "purpose": purpose, "mac": encode(hmac.digest(request_key(root), said, "sha256")),
            "signature": encode(device.sign(said)),
        }, keys=self.answer_keys)
        agreed = device.agree(decode(reply.members.get("ephemeral"), 65))
        successor = {"number": current["number"] + 1, "root": encode(next_root(root, agreed))}
        if reply.signer != left or reply.members.get("token") != token(values, successor):
            raise ClientError("false-answer", "token: not the next epoch, signed with the session's key")
        self._state.save(session={**values, "successor": successor})

    def _go_on_with_successor(self) -> None:
        values = self.values
        kept = {"account": values["account"], "id": values["id"], "current": values["successor"],
                "counter": values.get("counter", 0)}
        self._state.save(session=kept)

    def renew(self) -> None:
        """Refreshes on request: from the newest epoch, which a signed answer has to confirm first."""
        if "successor" in self.values:
            reply = self._channel.send("GET", self._setup.prefix + "/session", self.key, {}, b"",
                self.answer_keys)
            self.heed(reply.signer, reply.error() if reply.refusal else None)
        self.refresh()
