"""A backend as teams have it: accounts, a login that ends the one before, a token and a login token,
orders. It reads forms, queries and JSON, and takes its token as a parameter, a bearer or a cookie. It
checks no signature: that is the task of the gateway in front of it."""

import http.server
import json
import secrets
import threading
import urllib.parse

from ports import reserve_port


class Shop:
    def __init__(self, *, believes_the_gateway: bool = False):
        """`believes_the_gateway`: the caller is the account that `Countersign-Account` names; tokens are
        not checked."""
        self.believes_the_gateway = believes_the_gateway
        self.passwords: dict[str, str] = {}
        self.users: list[str] = []
        self.tokens: dict[str, int] = {}
        self.login_tokens: dict[str, int] = {}
        self.records: dict[str, int] = {}
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.lock = threading.Lock()
        self.port = reserve_port()
        shop = self

        class Answering(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with shop.lock:
                    shop.seen.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}))
                    said, cookie = shop.judge(self.path, self.headers, body)
                text = json.dumps(said).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                if cookie:
                    self.send_header("Set-Cookie", f"sid={cookie}; HttpOnly; Path=/")
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Answering)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def __enter__(self) -> "Shop":
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()

    def expire(self) -> None:
        """Every token of now has run out; login tokens are good."""
        with self.lock:
            self.tokens.clear()

    @staticmethod
    def parameters(target: str, headers, body: bytes) -> dict[str, str]:
        found = dict(urllib.parse.parse_qsl(target.partition("?")[2]))
        kind = headers.get("Content-Type", "").split(";")[0]
        if kind == "application/x-www-form-urlencoded":
            found |= dict(urllib.parse.parse_qsl(body.decode()))
        if kind == "application/json" and body:
            found |= {name: str(value) for name, value in json.loads(body).items()}
        return found

    def token(self, given: dict[str, str], headers) -> str:
        bearer = headers.get("Authorization", "").removeprefix("Bearer ")
        cookies = dict(part.strip().split("=", 1) for part in headers.get("Cookie", "").split(";") if "=" in part)
        return given.get("token") or bearer or cookies.get("sid", "")

    def judge(self, target: str, headers, body: bytes) -> tuple[dict, str | None]:
        path, given = target.partition("?")[0], self.parameters(target, headers, body)
        name, password = given.get("phoneNo", ""), given.get("pwd", "")
        if path == "/user/register":
            if name in self.passwords:
                return {"userId": 0}, None
            self.passwords[name] = password
            self.users.append(name)
            return {"userId": len(self.users)}, None
        if path == "/user/login":
            if self.passwords.get(name) != password:
                return {"userId": 0}, None
            user = self.users.index(name) + 1
            for kept in (self.tokens, self.login_tokens):
                for token in [token for token, owner in kept.items() if owner == user]:
                    del kept[token]
            login_token = secrets.token_hex(16)
            self.login_tokens[login_token] = user
            return {"userId": user, "token": (token := self.issue(user)), "loginToken": login_token}, token
        if path == "/user/token":
            user = self.login_tokens.get(given.get("loginToken", ""))
            if user is None:
                return {"err": {"code": -100, "msg": "sign in", "eventId": "e"}}, None
            return {"token": (token := self.issue(user))}, token
        if self.believes_the_gateway and path == "/orders":
            user = self.own_record(headers.get("Countersign-User-Id"), headers.get("Countersign-Account", ""))
            return {"orders": [user * 100], "userId": user}, None
        token = self.token(given, headers)
        user = self.tokens.get(token)
        if user is None:
            return {"err": {"code": -100, "msg": "sign in", "eventId": "e"}}, None
        if path == "/user/logout":
            del self.tokens[token]
            self.login_tokens = {kept: owner for kept, owner in self.login_tokens.items() if owner != user}
            return {"result": 1}, None
        return {"orders": [user * 100], "userId": user}, None

    def own_record(self, user_id: str | None, account: str) -> int:
        """The id that this backend gave before, or one of its own for a name that signed up at the gateway."""
        if user_id is not None:
            return int(user_id)
        assert account.startswith("name:"), account
        return self.records.setdefault(account, 42 + len(self.records))

    def issue(self, user: int) -> str:
        token = secrets.token_hex(16)
        self.tokens[token] = user
        return token
