"""A server from before, as teams run it: the schemes L1 to L4, the login ladder L5 and the tokens L6, from the field's formulas alone
(hashlib, hmac, urllib). It shares no code with ours. It keeps all that it was sent, and can be told to misbehave."""

import contextlib
import dataclasses
import hashlib
import hmac
import http.server
import json
import pathlib
import secrets
import socket
import ssl
import threading
import time
import urllib.parse
import uuid

from l5_client import kept, minute

FORM = "application/x-www-form-urlencoded"


def mac(secret: str, text: str) -> str:
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


@dataclasses.dataclass
class Seen:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    problem: str | None = None

    @property
    def path(self) -> str:
        return self.target.split("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    @property
    def is_form(self) -> bool:
        return self.headers.get("content-type", "").split(";")[0] == FORM

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """What a server of the field takes for parameters."""
        text = self.body.decode() if self.method == "POST" and self.is_form else self.query
        return urllib.parse.parse_qsl(text, keep_blank_values=True)

    @property
    def form(self) -> dict[str, str]:
        return dict(self.pairs)

    @property
    def token(self) -> str | None:
        bearer = self.headers.get("authorization", "")
        return bearer.removeprefix("Bearer ") if bearer else self.form.get("token")


class OldServer:
    """`scheme` is one of L1 to L4, or `none`; `rung` one of L5's. Tokens live until `expire` is called."""

    def __init__(self, folder: pathlib.Path, identity, scheme: str = "none", key_id: str = "", secret: str = "", *,
                 rung: str = "md5", salt: str = "", key: str = "", login_tokens: bool = True):
        self.scheme, self.key_id, self.secret = scheme, key_id, secret
        self.rung, self.salt, self.key, self.login_tokens = rung, salt, key, login_tokens
        self.passwords: dict[str, tuple[int, str]] = {}
        self.tokens: dict[str, int] = {}
        self.old: set[str] = set()
        self.renewing: dict[str, int] = {}
        self.seen: list[Seen] = []
        self.rands: set[str] = set()
        self.retired: str | None = None
        self.lock = threading.Lock()
        (folder / "old.pem").write_bytes(identity.pem)
        (folder / "old.key").write_bytes(identity.key_pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "old.pem", folder / "old.key")

        self.connections: list[ssl.SSLSocket] = []

        class Answering(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(handler):  # noqa: N805 the outer `self` is the server
                super().setup()
                self.connections.append(handler.connection)

            def answer(handler):  # noqa: N805 see above
                length = int(handler.headers.get("Content-Length", 0))
                seen = Seen(handler.command, handler.path, {k.lower(): v for k, v in handler.headers.items()},
                            handler.rfile.read(length))
                status, body = self.judge(seen)
                text = json.dumps(body).encode()
                handler.send_response(status)
                handler.send_header("Content-Type", "application/json")
                handler.send_header("Content-Length", str(len(text)))
                handler.end_headers()
                handler.wfile.write(text)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        class Listening(http.server.ThreadingHTTPServer):
            request_queue_size = 128

        self.http = Listening(("127.0.0.1", 0), Answering)
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)

    def __enter__(self) -> "OldServer":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()
        # A client that kept a connection alive would continue with a server that is gone.
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.http.server_address[1]}"

    # What a test does

    def add(self, name: str, user: int, password: str) -> None:
        self.passwords[name] = (user, kept(self.rung, password, self.salt, self.key))

    def expire(self) -> None:
        """Every token of now has run out."""
        with self.lock:
            self.old |= set(self.tokens)
            self.tokens.clear()

    def at(self, path: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.path == path]

    # L1 and L6

    def judge(self, seen: Seen) -> tuple[int, dict]:
        with self.lock:
            self.seen.append(seen)
            if self.retired:
                return 200, {"err": {"code": -99, "msg": "update", "eventId": self.retired}}
            seen.problem = self.unsigned(seen)
            if seen.problem:
                return 200, {"err": {"code": -3, "msg": seen.problem, "eventId": str(uuid.uuid4())}}
            if seen.path in ("/login/login.php", "/login/loginhmac.php"):
                return 200, self.log_in(seen)
            if seen.path == "/login/token.php":
                return 200, self.renew(seen)
            if seen.path == "/open":
                return 200, {"open": True}
            return 200, self.call(seen)

    def over(self) -> dict:
        return {"err": {"code": -100, "msg": "sign in", "eventId": str(uuid.uuid4())}}

    def log_in(self, seen: Seen) -> dict:
        is_minute = seen.path == "/login/loginhmac.php"
        if is_minute != (self.rung == "hmac-md5-time") or seen.method != ("GET" if self.rung == "plain-get" else "POST"):
            return {"userId": 0}
        user, value = self.passwords.get(seen.form.get("username", ""), (0, ""))
        expected = {value}
        if is_minute:
            inner = hashlib.md5(self.key.encode()).hexdigest().encode()
            expected = {hmac.new(inner, (value + minute(time.time() - back)).encode(), "md5").hexdigest() for back in (0, 60)}
        if not user or seen.form.get("password") not in expected:
            return {"userId": 0}
        # Single sign-on: the second login ends the first.
        self.tokens = {token: owner for token, owner in self.tokens.items() if owner != user}
        self.renewing = {token: owner for token, owner in self.renewing.items() if owner != user}
        token, login_token = secrets.token_urlsafe(18), secrets.token_urlsafe(18)
        self.tokens[token] = user
        answer = {"userId": user, "token": token, "expiresIn": 7200}
        if self.login_tokens:
            self.renewing[login_token] = user
            answer["loginToken"] = login_token
        return answer

    def renew(self, seen: Seen) -> dict:
        user = self.renewing.get(seen.form.get("loginToken", ""))
        if not user:
            return self.over()
        token = secrets.token_urlsafe(18)
        self.tokens = {token: owner for token, owner in self.tokens.items() if owner != user}
        self.tokens[token] = user
        return {"token": token, "expiresIn": 7200}

    def call(self, seen: Seen) -> dict:
        user = self.tokens.get(seen.token or "")
        if user and (self.scheme != "form-md5" or seen.form.get("userId") == str(user)):
            return {"user": user, "body": seen.body.decode(errors="replace")}
        if seen.token in self.old:
            return {"err": {"code": -101, "msg": "renew", "eventId": str(uuid.uuid4())}}
        return self.over()

    # L1 to L4: what is wrong with the signature

    def unsigned(self, seen: Seen) -> str | None:
        if self.scheme == "none":
            return None
        if seen.path.startswith("/login/") and self.scheme == "auth-v4":
            return None
        return {"form-md5": self.form_md5, "auth-v1": self.auth_v1, "auth-v2": self.auth_v2, "auth-v4": self.auth_v4}[
            self.scheme](seen)

    def form_md5(self, seen: Seen) -> str | None:
        parameters = seen.form
        if len(parameters) != len(seen.pairs):
            return "a parameter twice"
        sign = parameters.pop("sign", "")
        if "private_key" in parameters or parameters.get("app_id") != self.key_id:
            return "app_id"
        if not (parameters.get("plat") and parameters.get("ver") and 8 <= len(parameters.get("rand", "")) <= 64):
            return "base parameters"
        if parameters["rand"] in self.rands:
            return "rand twice"
        self.rands.add(parameters["rand"])
        at = time.strptime(parameters.get("timestamp", ""), "%Y-%m-%d-%H:%M:%S")
        if abs(time.time() - time.mktime(at) + time.timezone) > 300:
            return "timestamp"
        text = "&".join(f"{k}={v}" for k, v in sorted((parameters | {"private_key": self.secret}).items()))
        return None if hashlib.md5(text.encode()).hexdigest() == sign else "sign"

    def auth(self, seen: Seen, version: str, id_name: str) -> tuple[dict[str, str], str | None]:
        form = seen.form
        if (form.get("auth_version"), form.get(id_name)) != (version, self.key_id):
            return form, "auth_version or key"
        return form, None if abs(time.time() - int(form.get("auth_timestamp", 0))) < 600 else "auth_timestamp"

    def auth_v1(self, seen: Seen) -> str | None:
        form, problem = self.auth(seen, "1.0", "auth_key")
        if problem:
            return problem
        text = "&".join(f"{k.lower()}={v}" for k, v in sorted(form.items()) if k != "auth_signature")
        if seen.body and not seen.is_form and form.get("body_md5") != hashlib.md5(seen.body).hexdigest():
            return "body_md5"
        return None if mac(self.secret, f"{seen.method}\n{seen.path}\n{text}") == form.get("auth_signature") else "auth_signature"

    def auth_v2(self, seen: Seen) -> str | None:
        form, problem = self.auth(seen, "2", "auth_client_id")
        if problem:
            return problem
        text = "&".join(f"{k}={v}" for k, v in sorted(form.items()) if not k.startswith("auth_"))
        text = f"{seen.method}\n{urllib.parse.unquote_plus(seen.path)}\n{urllib.parse.unquote_plus(text)}"
        return None if mac(self.secret, text) == form.get("auth_signature") else "auth_signature"

    def auth_v4(self, seen: Seen) -> str | None:
        if (seen.headers.get("x-auth-version"), seen.headers.get("x-auth-client-id")) != ("4", self.key_id):
            return "X-Auth-Version or X-Auth-Client-ID"
        quote = lambda text: urllib.parse.quote(text, safe="-._~")  # noqa: E731
        members = json.loads(seen.body) if seen.body else {}
        # Strings alone: what else a value can be is auth_clients.py's to say.
        params = "&".join(f"{quote(k)}={quote(v)}" for k, v in sorted((k.lower(), v) for k, v in members.items()))
        text = f"{seen.method}\n{self.url}{seen.target}\n{params}"
        return None if mac(self.secret, text) == seen.headers.get("x-auth-signature") else "X-Auth-Signature"
