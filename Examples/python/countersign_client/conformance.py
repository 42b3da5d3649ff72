"""The driver for `countersign conformance -- python -m countersign_client.conformance`: one JSON object a
line on standard input, one answer a line on standard output (docs/conformance.md)."""

import hmac
import json
import pathlib
import sys

from . import opaque
from .client import Client
from .encoding import account_name, decode, encode, password_bytes, transcript
from .errors import ClientError
from .session import next_root, request_key
from .setup import Setup
from .signatures import Key, Request, sign


FEATURES = ("device-signature", "change-password", "pin-manifest", "next-authority-key")


class Driver:
    def __init__(self) -> None:
        self.client: Client | None = None

    def act(self, action: dict) -> dict:
        act = getattr(self, "do_" + str(action.get("do")).replace("-", "_"), None)
        if act is None:
            return {"unsupported": True}
        try:
            return {"ok": act(action) or {}}
        except ClientError as error:
            return {"error": {"code": error.code, "detail": error.detail}}

    def do_set_up(self, action: dict) -> dict:
        self.client = Client(Setup.read(action), pathlib.Path(action["state"]) / "state.json")
        return {"port": "countersign_client, Python", "features": list(FEATURES)}

    def do_sign_up(self, action: dict) -> None:
        self.client.sign_up(action["account"], action["password"])

    def do_log_in(self, action: dict) -> dict:
        self.client.log_in(action["account"], action["password"])
        return self.client.status()

    def do_call(self, action: dict) -> dict:
        answer = self.client.call(
            action["method"], action["target"], action.get("fields"), decode(action.get("body", "")),
            action.get("once", False))
        return {"status": answer.status, "body": encode(answer.body)}

    def do_refresh(self, _: dict) -> dict:
        self.client.session.renew()
        return self.client.status()

    def do_log_out(self, _: dict) -> None:
        self.client.log_out()

    def do_change_password(self, action: dict) -> None:
        self.client.change_password(action["password"], action["new_password"])

    def do_update_pins(self, _: dict) -> dict:
        return {"version": self.client.update_pins()}

    def do_status(self, _: dict) -> dict:
        return self.client.status()

    # Known answers: what the protocol computes from given values.

    def do_known_signature(self, action: dict) -> dict:
        request = Request(action["method"], action["target"], action["authority"], dict(action["fields"]),
                          decode(action["body"]))
        key = Key(action["key_id"], decode(action["secret"], 32), action["release"])
        base = sign(request, key, action["created"], action["nonce"])
        return {"base": base.decode(), "signature": request.fields["signature"],
                "content_digest": request.fields.get("content-digest")}

    def do_known_password(self, action: dict) -> dict:
        return {"bytes": encode(password_bytes(action["text"]))}

    def do_known_account(self, action: dict) -> dict:
        return {"name": account_name(action["text"])}

    def do_known_registration(self, action: dict) -> dict:
        registration = opaque.Registration(decode(action["password"]), decode(action["blind"]))
        record = registration.finish(decode(action["response"]), decode(action["client"]),
                                     decode(action["server"]), decode(action["envelope_nonce"]))
        return {"request": encode(registration.request), "record": encode(record)}

    def do_known_login(self, action: dict) -> dict:
        login = opaque.Login(decode(action["password"]), decode(action["blind"]), decode(action["nonce"]),
                             decode(action["seed"]))
        finished = login.finish(decode(action["ke2"]), decode(action["client"]), decode(action["server"]),
                                decode(action["context"]))
        return {"ke1": encode(login.ke1), "ke3": encode(finished.ke3),
                "session_key": encode(finished.session_key)}

    def do_known_session_keys(self, action: dict) -> dict:
        session_key = decode(action["session_key"])
        root = opaque.expand(session_key, b"countersign/1 root", 32)
        following = next_root(root, decode(action["agreed"]))
        finish = opaque.expand(session_key, b"countersign/1 finish", 32)
        return {"finish": encode(finish), "root": encode(root),
                "request": encode(request_key(root)), "next_root": encode(following),
                "next_request": encode(request_key(following))}

    def do_known_refresh(self, action: dict) -> dict:
        said = transcript("refresh-2", action["app"], action["release"], decode(action["session"]),
                          action["epoch"], decode(action["attempt"]), action["time"], action["counter"],
                          decode(action["nonce"]), action["purpose"])
        return {"transcript": encode(said), "mac": encode(hmac.digest(decode(action["key"]), said, "sha256"))}


def main() -> None:
    driver = Driver()
    for line in sys.stdin:
        print(json.dumps(driver.act(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
