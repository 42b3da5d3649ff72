"""`decide`: nginx, haproxy, Caddy, Traefik and Envoy ask about each request, each with the configuration of Examples/decide,
and pass on what is let through."""

import os
import pathlib
import shutil
import socket
import urllib.parse

import pytest

import processes
from backend import Backend
from gateway import ROOT, Gateway, run
from l1_client import signed as form_signed
from ports import reserve_port
from waiting import until
from wire import Connection

EXAMPLES = ROOT / "Examples/decide"
VENV = ROOT / ".build/venv"
IDENTITY = ("app", "release", "platform", "version", "scheme", "account", "user-id", "session", "client", "event", "verdict", "checked",
            "assertion", "unsigned-parts")
# What each dialect reads, so that each proxy is shown those of the others.
NAMES = {"X-Original-Method": "GET", "X-Original-URI": "/open/forged", "X-Original-Host": "HOST", "X-Forwarded-Method": "GET",
         "X-Forwarded-Uri": "/open/forged", "X-Forwarded-Host": "HOST", "X-Forwarded-Proto": "https"}
# Fields by which some server or framework learns the caller, the method or the path.
CALLERS = ("Countersign_Account: 1", "Countersign.Account: 1", "countersign~account: 1", "X-Original-URL: /mine",
           "X-HTTP-Method-Override: DELETE", "X-Rewrite-URL: /mine", "Remote-User: root", "HTTP2-Settings: AAMA",
           "X-Middleware-Subrequest: a", "X-Forwarded-User: root", "X-Forwarded-Prefix: /a", "Forwarded: for=9.9.9.9",
           "X-Real-IP: 9.9.9.9", "X-Forwarded-Port: 9", "X-Forwarded-Host: evil.test", "Client-IP: 9.9.9.9")


def program(name: str) -> str:
    found = shutil.which(name) or shutil.which(str(VENV / "bin" / name))
    if found is None and name == "envoy":
        found = next(map(str, VENV.glob("lib/python*/site-packages/**/envoy")), None)
    assert found, f"{name}: not installed; script/setup check brings it"
    return found


class Proxy:
    """One of the examples, with this test's addresses in the place of its own."""

    def __init__(self, dialect: str, folder: pathlib.Path, gateway: Gateway, backend: Backend, port: int):
        self.dialect, self.folder, self.port, self.gateway = dialect, folder, port, gateway
        self.secret = (gateway.data / "decide-secret").read_text()
        self.places = {"127.0.0.1:8443": f"127.0.0.1:{gateway.port}", "127.0.0.1:3000": f"127.0.0.1:{backend.port}",
                       "127.0.0.1:8080": f"127.0.0.1:{port}", "port_value: 8443": f"port_value: {gateway.port}",
                       "port_value: 3000": f"port_value: {backend.port}", "port_value: 8080": f"port_value: {port}",
                       "SECRET": self.secret}
        folder.mkdir()
        with open(folder / "said", "wb") as said:
            self.process = processes.start(getattr(self, dialect)(), stdout=said, stderr=said, cwd=folder, env={
                **os.environ, "COUNTERSIGN_DECIDE": f"http://127.0.0.1:{gateway.port}/countersign/v1/decide",
                "COUNTERSIGN_SECRET": self.secret, "HOME": str(folder)})
        until(lambda: self.listens() or self.process.poll() is not None, f"{dialect} does not listen")
        assert self.process.poll() is None, (folder / "said").read_text(errors="replace")[-800:]

    def listens(self) -> bool:
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def example(self, name: str) -> str:
        text = (EXAMPLES / name).read_text()
        body = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
        for theirs, ours in self.places.items():
            body = body.replace(theirs, ours)
        return body

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def nginx(self) -> list[str]:
        folder = self.folder
        kept = " ".join(f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        path = self.write("nginx.conf", f"daemon off; pid {folder}/pid; error_log {folder}/errors; events {{}}\n"
                                        f"http {{ access_log off; {kept}\n{self.example('nginx.conf')} }}\n")
        return [program("nginx"), "-p", str(folder), "-c", str(path)]

    def haproxy(self) -> list[str]:
        self.write("decide.lua", (EXAMPLES / "decide.lua").read_text())
        return [program("haproxy"), "-db", "-f", str(self.write("haproxy.cfg", self.example("haproxy.cfg")))]

    def caddy(self) -> list[str]:
        return [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(self.write("Caddyfile", self.example("Caddyfile")))]

    def traefik(self) -> list[str]:
        path = self.write("traefik-dynamic.yml", self.example("traefik-dynamic.yml"))
        return [program("traefik"), f"--entryPoints.web.address=127.0.0.1:{self.port}", f"--providers.file.filename={path}",
                "--global.checkNewVersion=false", "--global.sendAnonymousUsage=false"]

    def envoy(self) -> list[str]:
        path = self.write("envoy.yaml", self.example("envoy.yaml"))
        return [program("envoy"), "-c", str(path), "--disable-hot-restart", "--concurrency", "1", "-l", "error"]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


class Scene:
    def __init__(self, dialect: str, folder: pathlib.Path):
        self.backend = Backend()
        self.port = reserve_port()
        self.host = f"127.0.0.1:{self.port}"
        gateway_port = f"127.0.0.1:{reserve_port()}"
        self.gateway = Gateway(folder / "gateway", "--tls", "off", "--decide", dialect, "--trusted-proxies", "127.0.0.1",
                               "--listen", gateway_port, "--authority", self.host).start()
        self.gateway.add_app("demo", require="signed", legacy_host="127.0.0.1", schemes="message-signatures,form-md5")
        self.gateway.admin("route", "set", "demo", "/open", "--require", "open")
        self.gateway.admin("route", "set", "demo", "/mine", "--require", "session")
        self.key = self.gateway.add_release()
        self.key.authority = self.host
        self.gateway.admin("release", "add", "demo", "--platform", "ios", "--version", "0.9", "--scheme", "form-md5", "--key-id",
                           "old", "--secret-stdin", stdin="old-secret")
        self.proxy = Proxy(dialect, folder / "proxy", self.gateway, self.backend, self.port)
        # Traefik listens before it has read its routes.
        until(lambda: self.send(self.plain("GET", "/open/ready")).status == 200, "the proxy finds no way")
        self.backend.seen.clear()

    def close(self) -> None:
        self.proxy.stop()
        self.gateway.stop()
        self.backend.close()

    def plain(self, method: str, target: str, *fields: str, body: bytes = b"") -> bytes:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self.host}", *fields]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def send(self, request: bytes):
        with Connection(self.port, None, 20) as connection:
            connection.send(request)
            return connection.answer()

    def refused(self, request: bytes) -> str | None:
        """The code of the refusal, which must not have reached the backend."""
        before = len(self.backend.seen)
        answer = self.send(request)
        assert answer.status in (401, 403), answer.status
        assert len(self.backend.seen) == before
        return answer.get("countersign-refusal")

    def identity(self) -> dict[str, str]:
        """What the backend was last told, without what is empty."""
        seen = self.backend.seen[-1]
        told = {name: seen.get(f"countersign-{name}") for name in IDENTITY}
        assert seen.get("countersign-decide") in (None, ""), "the secret went on"
        return {name: value for name, value in told.items() if value}


@pytest.fixture(scope="module", params=["nginx", "haproxy", "caddy", "traefik", "envoy"])
def scene(request, tmp_path_factory):
    made = Scene(request.param, tmp_path_factory.mktemp(request.param))
    yield made
    made.close()


def test_an_accepted_request_arrives_with_its_identity(scene):
    assert scene.send(scene.key.request("GET", "/orders?a=1&b=%2F")).status == 200
    seen, told = scene.backend.seen[-1], scene.identity()
    assert (seen.method, seen.target) == ("GET", "/orders?a=1&b=%2F")
    assert told["app"] == "demo" and told["release"] == scene.key.key_id and told["scheme"] == "message-signatures"
    assert told["platform"] == "ios" and told["version"] == "1.0" and told["checked"] == "head; body=unseen"
    # Envoy says the machine's own address where a client calls by loopback.
    assert told["client"] == "127.0.0.1" or scene.proxy.dialect == "envoy"
    assert not {"verdict", "account", "session"} & told.keys()
    # The gateway never sees the body: the backend is told to compare it with the digest that was signed.
    assert scene.send(scene.key.request("POST", "/orders", b"amount=1")[:-1] + b"9").status == 200
    assert scene.backend.seen[-1].body == b"amount=9" and scene.identity()["checked"] == "head; body=digest"
    if scene.send(scene.key.request("GET", "/orders").replace(b"\r\n\r\n", b"\r\nContent-Length: 8\r\n\r\namount=9")).status == 200:
        assert scene.identity()["checked"] == "head; body=unseen", "the body was added after signing"


def test_a_refused_request_reaches_no_backend(scene):
    once = scene.key.request("GET", "/orders")
    assert scene.send(once).status == 200
    refusals = {"replayed": once, "unsigned": scene.plain("GET", "/orders"), "session-required": scene.key.request("GET", "/mine"),
                "bad-signature": scene.key.request("GET", "/orders/a").replace(b"/orders/a", b"/orders/b")}
    assert {code: scene.refused(request) for code, request in refusals.items()} == {code: code for code in refusals}
    # An open route named in the fields of any dialect opens nothing else.
    for names in (NAMES, {name.lower(): value for name, value in NAMES.items()}):
        fields = [f"{name}: {value.replace('HOST', scene.host)}" for name, value in names.items()]
        assert scene.refused(scene.plain("GET", "/orders", *fields)) in ("unsigned", "malformed", "forbidden")
    # A path with two readings opens nothing.
    for target in ("/open/../orders", "/open/%2e%2e/orders", "/open//../orders", "/open/..%2forders", "/open/..;/orders",
                   "/OPEN%2F..%2Forders"):
        before = len(scene.backend.seen)
        answer = scene.send(scene.plain("GET", target))
        reached = [seen.target for seen in scene.backend.seen[before:]]
        assert reached == [] and answer.status >= 300, (target, answer.status, reached)
    scene.gateway.admin("app", "policy", "demo", "--set", "enforcement=observe")
    try:
        assert scene.send(scene.plain("GET", "/orders")).status == 200
        told = scene.identity()
        assert told["verdict"] == "unsigned" and not {"app", "release", "account"} & told.keys(), told
    finally:
        scene.gateway.admin("app", "policy", "demo", "--set", "enforcement=enforce")
    # The proof of form-md5 is in the body of a POST. Its refusals have the status 200, which a proxy would take as permission.
    parameters = urllib.parse.urlencode(form_signed({"a": "1"}, "old", "old-secret", "ios", "0.9"))
    form = scene.plain("POST", "/orders", "Content-Type: application/x-www-form-urlencoded", body=parameters.encode())
    assert scene.refused(form) == "decide-needs-body"
    assert scene.send(scene.plain("GET", f"/orders?{parameters}")).status == 200
    assert scene.identity()["scheme"] == "form-md5" and scene.identity()["release"] == "old"
    assert scene.refused(scene.plain("GET", f"/orders?{parameters}")) == "replayed"


def test_no_field_of_the_caller_reaches_the_backend_as_the_proxys(scene):
    forged = [f"Countersign-{name.title()}: forged" for name in IDENTITY if name != "release"]
    forged += ["Countersign-Release: forged", "Countersign-Decide: forged", "countersign-ACCOUNT: forged"]
    assert scene.send(scene.plain("GET", "/open/a", *forged)).status == 200
    told = scene.identity()
    assert "forged" not in told.values() and set(told) <= {"client", "event", "checked"}, told
    assert told["checked"] == "nothing"
    # Beside a good signature, too.
    signed = scene.key.request("GET", "/orders").replace(b"\r\n\r\n", b"\r\nCountersign-Account: forged\r\nCountersign-Verdict: forged\r\n\r\n")
    assert scene.send(signed).status == 200 and "forged" not in scene.identity().values()
    for field in CALLERS:
        name, _, value = field.lower().partition(": ")
        before = len(scene.backend.seen)
        scene.send(scene.plain("GET", "/open/a", field))
        for seen in scene.backend.seen[before:]:
            assert (name, value) not in [(sent.lower(), said.lower()) for sent, said in seen.fields], f"{field} reached the backend"
    # The gateway would judge no request inside a tunnel.
    before = len(scene.backend.seen)
    scene.send(scene.plain("GET", "/open/a", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"))
    assert all("h2c" not in (seen.get("upgrade") or "") for seen in scene.backend.seen[before:])
    # `Connection` removes no field that the gateway added.
    request = scene.key.request("GET", "/orders").replace(
        b"\r\n\r\n", b"\r\nConnection: Countersign-App, Countersign-Checked, Countersign-Client\r\n\r\n")
    before = len(scene.backend.seen)
    if scene.send(request).status == 200:
        assert len(scene.backend.seen) == before + 1 and {"app", "checked", "client"} <= scene.identity().keys()


def test_only_the_proxy_may_ask(scene):
    gateway = scene.gateway

    def ask(*fields: str) -> int:
        path = "/countersign/v1/decide/open" if scene.proxy.dialect == "envoy" else "/countersign/v1/decide"
        own = {"nginx": "X-Original", "haproxy": "X-Original", "envoy": "none"}.get(scene.proxy.dialect, "X-Forwarded")
        names = [f"{name}: {value.replace('HOST', scene.host)}" for name, value in NAMES.items() if name.startswith(own)]
        lines = [f"GET {path} HTTP/1.1", f"Host: {scene.host}", *names, *fields]
        return gateway.send("\r\n".join(lines).encode() + b"\r\n\r\n").status

    right = f"Countersign-Decide: {scene.proxy.secret}"
    assert ask(right) == 200
    assert ask() == 403 and ask("Countersign-Decide: wrong") == 403 and ask(right, right) == 403


def test_it_is_off_by_default_and_needs_a_trusted_proxy(tmp_path):
    with Gateway(tmp_path / "off", "--tls", "off", "--trusted-proxies", "127.0.0.1") as gateway:
        answer = gateway.send(f"GET /countersign/v1/decide HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\n\r\n".encode())
        assert answer.status == 404
    with Gateway(tmp_path / "other", "--tls", "off", "--decide", "nginx", "--trusted-proxies", "10.0.0.0/8") as gateway:
        answer = gateway.send(f"GET /countersign/v1/decide HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\n\r\n".encode())
        assert answer.status == 404, "to anybody else there is no such route"
        assert (gateway.data / "decide-secret").stat().st_mode & 0o777 == 0o600
    done = run("serve", "--data", tmp_path / "none", "--decide", "nginx", "--tls", "off", "--listen", "127.0.0.1:0", "--admin", "off")
    assert done.returncode == 2 and "--trusted-proxies" in done.err
