"""Signed requests and believed answers. Only what the server has signed, and bound to the request that it
answers, counts."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from . import keylife, transport
from .encoding import encode
from .errors import ClientError
from .setup import Setup
from .signatures import Answer, Key, Request, sign, verify
from .state import State


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
        """The code of a refusal that the server has signed. A copy of an earlier answer says what was so
        then."""
        if self.signer is None or self.answer.status < 400 or "countersign-replayed" in self.answer.fields:
            return None
        code = self.members.get("code")
        return code if isinstance(code, str) else None

    def error(self) -> ClientError:
        """The refusal with its members and the id of the key that signed it."""
        names = ("reason", "at", "by", "update_url")
        said = {name: self.members[name] for name in names if name in self.members}
        detail = str(self.members.get("detail", ""))
        return ClientError(self.refusal or "", detail, signer=self.signer, **said)


class Channel:
    def __init__(self, setup: Setup, state: State):
        self.setup, self.state = setup, state
        # Seconds for which the server recognizes an idempotency key, as far as it has said so.
        self.keys_kept = keylife.LOWEST

    @property
    def pinned_setup(self) -> Setup:
        """With the pins in force: those of the last manifest that was taken up and is newer than the setup's
        pins, else those of the setup."""
        kept = self.state.values.get("pins")
        if not kept or kept["version"] <= self.setup.pins_version:
            return self.setup
        return replace(self.setup, pins=frozenset(kept["pins"]))

    @property
    def pins_version(self) -> int:
        """Which manifest the pins in force stand for."""
        kept = self.state.values.get("pins", {"version": 0})
        return max(kept["version"], self.setup.pins_version)

    def now(self) -> int:
        """The server's time as far as it is known, else the device's; whole Unix seconds."""
        return int(time.time()) + self.setup.clock_offset + self.state.values.get("behind", 0)

    def _learn(self, server_time: object, asked: float) -> bool:
        """Takes the time of a signed answer, if it came within 5 s by the monotonic clock."""
        if not isinstance(server_time, int) or time.monotonic() - asked > 5:
            return False
        self.state.save(behind=server_time - int(time.time()) - self.setup.clock_offset)
        return True

    def send(self, method: str, target: str, key: Key, fields: dict[str, str], body: bytes,
             keys: dict[str, bytes], countersign: Callable[[Request], None] | None = None,
             check: Callable[[], None] | None = None) -> Reply:
        """Signs and sends. The first `stale` corrects the clock, and the request is signed anew and sent
        once more. `keys` are those that a session's answers may be signed with; `countersign` adds a
        second signature. `check` is called before each copy is sent, and raises where none may be sent."""
        for is_last in (False, True):
            if check:
                check()
            request = Request(method, target, self.setup.authority, dict(fields), body)
            sign(request, key, self.now())
            if countersign:
                countersign(request)
            asked = time.monotonic()
            answer = transport.exchange(request, self.pinned_setup)
            # Every connection of this client is TLS.
            kept = keylife.stated(answer.fields.get("idempotency-keys-kept"))
            self.keys_kept = self.keys_kept if kept is None else kept
            signer, used = verify(answer, request, self.authority_keys, keys)
            if used is not None and used == self.setup.next_authority_key:
                self.note_next_key(used)
            reply = Reply(answer, signer)
            if reply.refusal != "stale" or is_last or not self._learn(reply.members.get("time"), asked):
                return reply
        raise AssertionError("unreachable")

    def ask(self, route: str, members: dict, key: Key | None = None,
            keys: dict[str, bytes] | None = None) -> Reply:
        """Asks a route of the authority's own, as the release where no key is given. Its answer is signed,
        or it is none."""
        release = Key(self.setup.release, self.setup.secret, self.setup.release)
        reply = self.send("POST", self.setup.prefix + route, key or release,
            {"content-type": "application/json"},
                          json.dumps(members).encode(), {} if keys is None else keys)
        if reply.signer is None:
            raise ClientError("false-answer", f"{route}: the answer is not signed")
        self.note_update(reply)
        if reply.refusal is not None:
            raise reply.error()
        if reply.answer.status != 200:
            raise ClientError("false-answer", f"{route}: status {reply.answer.status}")
        return reply

    @property
    def authority_keys(self) -> list[bytes]:
        """Without the former key once an answer under the next one was seen: the former may have leaked."""
        following = self.setup.next_authority_key
        if following is None:
            return [self.setup.authority_key]
        if self.state.values.get("authority_key_in_use") == encode(following):
            return [following]
        return [self.setup.authority_key, following]

    def note_next_key(self, key: bytes) -> None:
        """Keeps that the server has rotated to this key."""
        if self.state.values.get("authority_key_in_use") != encode(key):
            self.state.save(authority_key_in_use=encode(key))

    def note_update(self, reply: Reply) -> None:
        """Keeps the link of a signed `update-required`, until a signed answer says something else."""
        link = str(reply.members.get("update_url", "")) if reply.refusal == "update-required" else None
        if reply.signer is not None and link != self.state.values.get("update"):
            self.state.save(update=link)
