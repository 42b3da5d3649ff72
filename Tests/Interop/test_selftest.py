"""`countersign selftest`: all holds where our gateway serves, and what is broken elsewhere is named."""

import contextlib
import hashlib
import http.server
import json
import ssl
import threading
import time
import urllib.parse
import uuid

import pytest

import needs
from backend import Backend
from gateway import Gateway, run
from ports import reserve_port
from sampling import sampled

# Two minutes on a debug build.

SCHEMES = ["message-signatures", "form-md5", "auth-v1", "auth-v2", "auth-v4", "sigv4"]
# Weaknesses of the schemes themselves, under any server. Source: legacy schemes in docs/protocol.md.
WEAKNESSES = {
    "message-signatures": set(), "sigv4": set(),
    "form-md5": {"tamper-method", "tamper-path", "ampersand-in-value"},
    "auth-v1": {"key-case", "ampersand-in-value"},
    "auth-v2": {"replay-at-once", "replay-new-connection", "tamper-body", "new-timestamp"},
    "auth-v4": {"replay-at-once", "replay-new-connection", "new-timestamp"},
}


def selftest(url: str, key_id: str, secret: str, scheme: str, *more: object) -> tuple[int, dict]:
    done = run("selftest", url, "--key-id", key_id, "--scheme", scheme, "--platform", "ios", "--app-version", "1.0", "--json",
               *more, environment={"COUNTERSIGN_SECRET": secret})
    assert done.out, done.err
    report = json.loads(done.out)
    report["verdicts"] = {check["name"]: check["verdict"] for check in report["checks"]}
    return done.returncode, report


def named(report: dict, verdict: str) -> set[str]:
    return {name for name, found in report["verdicts"].items() if found == verdict}


class Deployment:
    """A gateway before a backend, with a release for each scheme."""

    def __init__(self, gateway: Gateway, backend: Backend):
        self.gateway, self.backend, self.keys = gateway, backend, {}
        for scheme in SCHEMES:
            app = scheme.replace("-", "")
            gateway.add_app(app, schemes=scheme)
            done = gateway.admin("release", "add", app, "--platform", "ios", "--version", "1.0", "--scheme", scheme, "--json")
            self.keys[scheme] = json.loads(done.out)

    def selftest(self, scheme: str, *more: object) -> tuple[int, dict]:
        key = self.keys[scheme]
        return selftest(self.gateway.url, key["key_id"], key["secret"], scheme,
                        "--ca", self.gateway.data / "tls/certificate.pem", *more)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    with (Backend() as backend,
          Gateway(tmp_path_factory.mktemp("selftest"), "--upstream", backend.url) as gateway):
        yield Deployment(gateway, backend)


@pytest.mark.parametrize("scheme", sampled(SCHEMES, "message-signatures"))
def test_our_gateway_holds(deployment, scheme):
    before = len(deployment.backend.seen)
    status, report = deployment.selftest(scheme, "--path", "/notes/7?a=b")
    assert named(report, "broken") == set(), report
    assert status == 0
    assert named(report, "known-weakness") == WEAKNESSES[scheme]
    assert report["held"] >= 45
    # That much was really let through, and nothing that was to be refused.
    seen = deployment.backend.seen[before:]
    assert 8 <= len(seen) <= 15
    assert not any("smuggled" in call.target or call.target.startswith("/countersign") for call in seen)


@pytest.mark.full
def test_without_a_path_nothing_reaches_the_backend(deployment):
    before = len(deployment.backend.seen)
    key = deployment.keys["message-signatures"]["authority_key"]
    status, report = deployment.selftest("message-signatures", "--authority-key", key)
    assert status == 0, report
    assert named(report, "not-applicable") == {"tamper-method"}
    assert len(deployment.backend.seen) == before


@pytest.mark.full
def test_another_authority_key_is_seen(deployment):
    status, report = deployment.selftest("message-signatures", "--authority-key", "A" * 42 + "E")
    assert status == 1
    assert named(report, "broken") == {"time", "answer-signed", "answer-bound", "answer-whole"}


@pytest.mark.full
def test_the_document(deployment):
    _, report = deployment.selftest("auth-v1")
    assert {"url", "held", "broken", "known_weaknesses", "not_applicable", "requests", "seconds", "checks"} <= set(report)
    assert report["url"] == deployment.gateway.url
    assert len(report["checks"]) == sum(report[name] for name in ("held", "broken", "known_weaknesses", "not_applicable"))
    for check in report["checks"]:
        assert set(check) == {"name", "family", "verdict", "sent", "expected", "came"}
        assert all(check.values())


@pytest.mark.full
def test_lines_for_people(deployment):
    key = deployment.keys["auth-v1"]
    done = run("selftest", deployment.gateway.url, "--key-id", key["key_id"], "--scheme", "auth-v1", "--secret-stdin",
               "--ca", deployment.gateway.data / "tls/certificate.pem", stdin=key["secret"] + "\n")
    assert done.returncode == 0, done.err
    lines = done.out.splitlines()
    assert all(line[0] in "✓!–" for line in lines[:-1])
    assert lines[-1].startswith("held: ")
    assert "\x1b" not in done.out
    assert "checks of" in done.err


@pytest.mark.full
def test_a_wrong_secret_ends_it(deployment):
    key = deployment.keys["message-signatures"]
    status, report = selftest(deployment.gateway.url, key["key_id"], "x" * 43, "message-signatures",
                              "--ca", deployment.gateway.data / "tls/certificate.pem")
    assert status == 1
    assert named(report, "broken") == {"genuine"}
    # What a refusal would show after that is nothing.
    assert report["held"] == 3
    assert len(named(report, "not-applicable")) > 50


# Usage and reach

@pytest.mark.full
def test_who_cannot_be_reached(deployment):
    port = reserve_port()
    done = run("selftest", f"https://127.0.0.1:{port}", "--key-id", "r_x", environment={"COUNTERSIGN_SECRET": "x" * 20})
    assert done.returncode == 3, done.err
    # The machine's authorities do not know the gateway's certificate.
    done = run("selftest", deployment.gateway.url, "--key-id", "r_x", environment={"COUNTERSIGN_SECRET": "x" * 20})
    assert done.returncode == 3
    assert "not trusted, nothing was sent" in done.err
    done = run("selftest", deployment.gateway.url, "--key-id", "r_x", "--pin", "sha256/" + "A" * 43 + "=",
               environment={"COUNTERSIGN_SECRET": "x" * 20})
    assert done.returncode == 3
    assert "not trusted" in done.err


def test_used_wrongly():
    for said, *arguments in (
        ("--over-plain-http-to-another-machine", "http://api.example.com"), ("--path", "https://127.0.0.1/path"),
        ("--platform", "https://127.0.0.1", "--scheme", "form-md5"),
        ("expected one that this build speaks", "https://127.0.0.1", "--scheme", "md5"),
        ("--window", "https://127.0.0.1", "--window", "1"),
    ):
        done = run("selftest", *arguments, "--key-id", "r_x", environment={"COUNTERSIGN_SECRET": "x" * 20})
        assert (done.returncode, done.out) == (2, "") and said in done.err, arguments


# Servers that are broken

class Lax(http.server.BaseHTTPRequestHandler):
    """Python's own server, which lets in whatever it can read."""
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = do_OPTIONS = answer

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(handler: type, context: ssl.SSLContext | None = None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if context:
        # Each connection's thread performs its handshake, so that an unfinished one delays no other
        # connection.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http{'s' if context else ''}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_server_that_lets_everything_in():
    with serving(Lax) as url:
        status, report = selftest(url, "r_x", "x" * 20, "message-signatures", "--path", "/")
    assert status == 1
    broken = named(report, "broken")
    # All that asks for a refusal, and what our own authority would have said.
    assert broken >= {"published-request", "published-key", "replay-at-once", "replay-new-connection", "replay-race", "burn-nonce",
                      "tamper-method", "tamper-path", "path-from-field", "tamper-query", "tamper-body", "tamper-host", "foreign-host",
                      "tamper-created", "tamper-nonce", "tamper-tag", "nonce-again", "uncovered-query", "uncovered-body", "stale", "future", "no-signature", "tamper-signature",
                      "no-nonce", "two-signatures", "two-schemes", "unknown-key", "downgrade-form-md5", "downgrade-auth-v2",
                      "two-content-lengths", "length-and-chunks", "time", "unknown-route", "server-version", "refusal-form"}
    assert named(report, "held") <= {"vectors", "genuine", "genuine-body", "just-fresh", "just-early", "oversized-head",
                                     "stack-trace", "secret", "unknown-encoding", "bare-line-feed", "bare-carriage-return",
                                     "space-before-colon", "folded-field"}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1 is deprecated")
def test_a_server_that_speaks_old_tls(deployment):
    """The same, with TLS from 1.0 on, by the gateway's certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls = deployment.gateway.data / "tls"
    context.load_cert_chain(tls / "certificate.pem", tls / "key.pem")
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    with serving(Lax, context) as url:
        _, report = selftest(url, "r_x", "x" * 20, "message-signatures", "--path", "/", "--ca", tls / "certificate.pem")
    assert {"tls-1.0", "tls-1.1"} <= named(report, "broken")
    assert {"certificate", "plain-http"} <= named(report, "held")


class FormMD5(Lax):
    """form-md5 by its formula, and one flaw, which each test names. What Python's server does to framing stays as it is."""
    flaw, key_id, secret = "", "app-7", "k" * 20
    window = 300

    def judge(self, form: str) -> int | None:
        pairs = urllib.parse.parse_qsl(form, keep_blank_values=True)
        values = dict(pairs)
        sign = values.pop("sign", None)
        if sign is None or "app_id" not in values:
            return -3
        if len(values) + 1 != len(pairs) or "private_key" in values or "\0" in form + urllib.parse.unquote(form) or "rand" not in values:
            return -1
        if self.flaw != "host" and self.headers["Host"] != f"127.0.0.1:{self.server.server_address[1]}":
            return -1
        if values["app_id"] != self.key_id:
            return -2
        if any(name.lower().startswith("x-auth-") for name in self.headers):
            return -1
        at = time.mktime(time.strptime(values["timestamp"], "%Y-%m-%d-%H:%M:%S")) - time.timezone
        if self.flaw == "burnt" and self.is_known(values["rand"]):
            return -5
        text = "&".join(f"{name}={value}" for name, value in sorted({**values, "private_key": self.secret}.items()))
        if hashlib.md5(text.encode()).hexdigest() != sign:
            return -3
        if self.flaw != "window" and abs(time.time() - at) > self.window:
            return -4
        if self.flaw not in ("replay", "burnt") and self.is_known(values["rand"]):
            return -5
        return None

    def is_known(self, rand: str) -> bool:
        with self.lock:
            known = rand in self.rands
            self.rands.add(rand)
            return known

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        code = self.judge(body if self.command == "POST" else self.path.partition("?")[2])
        said = json.dumps({"err": {"code": code, "msg": "no", "eventId": str(uuid.uuid4())}} if code else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_OPTIONS = answer


@pytest.fixture(scope="module")
def of_the_field():
    """What is broken of such a server, by its flaw."""
    def broken(flaw: str) -> set[str]:
        handler = type("Flawed", (FormMD5,), {"flaw": flaw, "rands": set(), "lock": threading.Lock()})
        with serving(handler) as url:
            status, report = selftest(url, FormMD5.key_id, FormMD5.secret, "form-md5")
        assert status == 1
        return named(report, "broken")
    broken.sound = broken("")
    return broken


@pytest.mark.full
def test_a_server_without_a_flaw_of_ours(of_the_field):
    """What Python's server and this one leave out, and nothing that they do."""
    assert of_the_field.sound >= {"two-content-lengths", "length-and-chunks", "time", "unknown-route", "server-version"}
    assert not any(name.startswith(("replay", "burn", "stale", "future", "tamper", "foreign")) for name in of_the_field.sound)


@pytest.mark.full
@pytest.mark.parametrize(("flaw", "named_alone"), [
    ("replay", {"replay-at-once", "replay-new-connection", "replay-race", "nonce-again"}),
    ("burnt", {"burn-nonce"}),
    ("window", {"stale", "future"}),
    ("host", {"tamper-host", "foreign-host"}),
])
def test_one_flaw_is_named_alone(of_the_field, flaw, named_alone):
    assert of_the_field(flaw) - of_the_field.sound == named_alone


# Our own gateway, broken on purpose

@pytest.mark.full
@needs.breakable
@pytest.mark.parametrize(("fault", "scheme", "named_alone"), [
    ("nonce-unchecked", "message-signatures", {"replay-at-once", "replay-new-connection", "replay-race", "nonce-again"}),
    ("nonce-before-signature", "message-signatures", {"burn-nonce", "published-request"}),
    ("path-from-header", "message-signatures", {"path-from-field"}),
    ("host-unchecked", "message-signatures", {"foreign-host"}),
    ("body-unverified", "message-signatures", {"tamper-body"}),
    ("json-first-wins", "auth-v4", {"duplicate-member"}),
    ("legacy-always-on", "message-signatures", {f"downgrade-{scheme}" for scheme in SCHEMES[1:]}),
])
def test_a_fault_of_our_own_gateway_is_named_alone(tmp_path, fault, scheme, named_alone):
    with Backend() as backend, Gateway(tmp_path, "--upstream", backend.url, "--sabotage", fault) as gateway:
        gateway.add_app("demo", schemes=scheme)
        key = json.loads(gateway.admin("release", "add", "demo", "--platform", "ios", "--version", "1.0", "--scheme", scheme,
                                       "--json").out)
        status, report = selftest(gateway.url, key["key_id"], key["secret"], scheme, "--path", "/notes",
                                  "--ca", gateway.data / "tls/certificate.pem")
    assert status == 1
    assert named(report, "broken") == named_alone
