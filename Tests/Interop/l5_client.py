"""The login ladder (L5) and tokens (L6) as clients in the field speak them: hashlib, hmac and a socket, nothing else."""

import base64
import hashlib
import hmac
import json
import ssl
import time
import urllib.request

RUNGS = ("plain-get", "plain-post", "base64", "md5", "md5-salt", "hmac-md5", "hmac-md5-time")


def md5(text: bytes) -> str:
    return hashlib.md5(text).hexdigest()


def keyed(key: bytes, text: bytes) -> str:
    return hmac.new(key, text, "md5").hexdigest()


def kept(rung: str, password: str, salt: str, key: str) -> str:
    """What an old backend keeps: but for the last rung, just what is sent."""
    raw = password.encode()
    return {
        "plain-get": lambda: password,
        "plain-post": lambda: password,
        "base64": lambda: base64.b64encode(raw).decode(),
        "md5": lambda: md5(raw),
        "md5-salt": lambda: md5(raw + salt.encode()),
        "hmac-md5": lambda: md5(keyed(key.encode(), raw).encode()),
        "hmac-md5-time": lambda: keyed(md5(key.encode()).encode(), raw),
    }[rung]()


def minute(now: float, offset: int = 0) -> str:
    return time.strftime("%Y-%m-%d%H:%M", time.gmtime(now + offset))


def sent(rung: str, password: str, salt: str, key: str, now: float | None = None, offset: int = 0) -> str:
    value = kept(rung, password, salt, key)
    if rung != "hmac-md5-time":
        return value
    at = minute(time.time() if now is None else now, offset)
    return keyed(md5(key.encode()).encode(), (value + at).encode())


class OldClient:
    """Escapes nothing, as they do: what it sends is what it has."""

    def __init__(self, url: str, ca: str | None = None):
        self.url, self.context = url, ssl.create_default_context(cafile=ca) if ca else None

    def call(self, path: str, form: str, method: str = "POST") -> tuple[int, dict, bytes]:
        url, data = (f"{self.url}{path}?{form}", None) if method == "GET" else (self.url + path, form.encode())
        request = urllib.request.Request(url, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60, context=self.context) as answer:
                body = answer.read()
                return answer.status, json.loads(body), body
        except urllib.error.HTTPError as error:
            body = error.read()
            return error.code, json.loads(body), body

    def log_in(self, rung: str, name: str, value: str) -> dict:
        path = "/login/loginhmac.php" if rung == "hmac-md5-time" else "/login/login.php"
        status, answer, _ = self.call(path, f"username={name}&password={value}", "GET" if rung == "plain-get" else "POST")
        assert status == 200, answer
        return answer

    def new_token(self, login_token: str) -> dict:
        return self.call("/login/token.php", f"loginToken={login_token}")[1]
