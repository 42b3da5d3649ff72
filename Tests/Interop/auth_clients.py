"""Clients of the auth schemes, as teams wrote them: hashlib, hmac and json, nothing else."""

import hashlib
import hmac
import json
import time
import urllib.parse


def mac(secret: str, text: str) -> str:
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def v2(secret: str, method: str, path: str, parameters: dict[str, str], key_id: str, now: float | None = None,
       name: str = "auth_client_id") -> str:
    """The form of an auth-v2 call."""
    joined = "&".join(f"{key}={parameters[key]}" for key in sorted(parameters))
    text = f"{method}\n{urllib.parse.unquote_plus(path)}\n{urllib.parse.unquote_plus(joined)}"
    auth = {name: key_id, "auth_timestamp": str(int(now or time.time())), "auth_version": "2"}
    return urllib.parse.urlencode(parameters | auth | {"auth_signature": mac(secret, text)})


def v4_value(value: object) -> str:
    """How a value is signed, where this client's own `json.dumps` writes the body."""
    match value:
        case None: return ""
        case bool(): return "1" if value else "0"
        case str(): return urllib.parse.quote(value, safe="-._~")
        case list() | dict(): return urllib.parse.quote(json.dumps(value), safe="-._~") if value else ""
        case _: return json.dumps(value)


def v4(secret: str, key_id: str, method: str, url: str, body: dict | None, now: float | None = None) -> dict[str, str]:
    """The fields of an auth-v4 call whose body is `json.dumps(body)`, or none."""
    members = sorted((key.lower(), value) for key, value in (body or {}).items())
    params = "&".join(f"{urllib.parse.quote(key, safe='-._~')}={v4_value(value)}" for key, value in members)
    return {
        "X-Auth-Version": "4", "X-Auth-Client-ID": key_id, "X-Auth-Timestamp": str(int(now or time.time())),
        "X-Auth-Signature": mac(secret, f"{method}\n{url}\n{params}"),
    }
