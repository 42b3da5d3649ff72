"""mitmproxy between the transport and its server, with an authority that the machine trusts: without pins it reads all,
with pins it gets not one byte of the request."""

import contextlib
import http.server
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import threading

import pytest

import processes
from gateway import ROOT
from products import peer
from test_pins import Identity
from waiting import until

DRIVER = peer("transport")
MITMDUMP = ROOT / ".build/mitmproxy/bin/mitmdump"
HOST = "api.example.com"

AUTHORITY = Identity("authority", is_authority=True)
SERVER = Identity("server", AUTHORITY, address="127.0.0.1", names=(HOST,))
BACKUP = Identity("a key in a safe")


@pytest.fixture
def server(tmp_path: pathlib.Path):
    """A TLS server that answers with the target it was asked for, and keeps a list of them."""
    seen = []

    class Answering(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            body = b"from the server"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    (tmp_path / "server.pem").write_bytes(SERVER.pem)
    (tmp_path / "server.key").write_bytes(SERVER.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    listening.seen = seen
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield listening
    listening.shutdown()


@contextlib.contextmanager
def mitmproxy(folder: pathlib.Path, *options: str):
    """mitmproxy with an authority of its own making; its port, its log, that authority."""
    log = folder / "mitmproxy.log"
    with open(log, "wb") as output:
        running = processes.start(
            [MITMDUMP, "--ssl-insecure", "--set", f"confdir={folder / 'mitmproxy'}", "--set", "flow_detail=3", *options],
            stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        def port() -> re.Match | None:
            assert running.poll() is None, log.read_text()
            return re.search(r"listening at [^\s]*:(\d+)", log.read_text())

        found = until(port, "mitmdump listens")
        running.port, running.log = int(found.group(1)), log
        running.authority = folder / "mitmproxy/mitmproxy-ca-cert.pem"
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(60)


def ask(port: int, authorities: pathlib.Path, target: str, *pins: str, proxy: int = 0) -> dict:
    command = [*DRIVER, "--host", HOST, "--port", str(port), "--authorities", str(authorities), "--target", target,
               "--proxy", str(proxy)]
    for pin in pins:
        command += ["--pin", pin]
    # A client that used these proxies of the environment would reach no server.
    astray = {name: "http://127.0.0.1:1" for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")}
    done = subprocess.run(command, capture_output=True, timeout=60, check=True, env={**os.environ, **astray})
    return json.loads(done.stdout)


def trusting_both(folder: pathlib.Path, middleman) -> pathlib.Path:
    authorities = folder / "authorities"
    authorities.mkdir()
    (authorities / "ours.pem").write_bytes(AUTHORITY.pem)
    (authorities / "theirs.pem").write_bytes(middleman.authority.read_bytes())
    return authorities


@pytest.fixture
def middleman(tmp_path: pathlib.Path, server):
    """mitmproxy where the server is thought to be."""
    origin = f"reverse:https://127.0.0.1:{server.server_port}@127.0.0.1:0"
    with mitmproxy(tmp_path, "--mode", origin, "--set", "keep_host_header=true") as running:
        yield running


def test_pins_keep_a_trusted_middleman_out(tmp_path: pathlib.Path, server, middleman):
    authorities = trusting_both(tmp_path, middleman)

    # The machine trusts both, so that without pins mitmproxy reads everything.
    assert ask(middleman.port, authorities, "/read-by-mitmproxy")["body"] == "from the server"
    assert "/read-by-mitmproxy" in middleman.log.read_text()
    assert server.seen == ["/read-by-mitmproxy"]

    # Pinned to the server's key: the server is reached, and mitmproxy is not.
    pins = (SERVER.pin, BACKUP.pin)
    assert ask(server.server_port, authorities, "/direct", *pins)["status"] == 200
    refused = ask(middleman.port, authorities, "/never-read", *pins)
    assert refused["fate"] == "notSent"
    assert refused["reasons"] == ["none of the pinned keys stands in the verified chain"]
    # The report names the key that was presented: that of the leaf that mitmproxy made.
    assert refused["served"] and not set(refused["served"]) & set(pins)
    middleman.send_signal(signal.SIGTERM)
    middleman.wait(60)
    said = middleman.log.read_text()
    assert "/never-read" not in said and "/never-read" not in server.seen
    assert "TLS" in said or "handshake" in said, said


def test_a_proxy_that_was_asked_for_gets_a_tunnel_and_no_more(tmp_path: pathlib.Path, server):
    pins = (SERVER.pin, BACKUP.pin)
    with mitmproxy(tmp_path, "--mode", "regular@127.0.0.1:0") as curious:
        authorities = trusting_both(tmp_path, curious)
        assert ask(server.server_port, authorities, "/read", proxy=curious.port)["status"] == 200
        assert "/read" in curious.log.read_text()
        refused = ask(server.server_port, authorities, "/never-read", *pins, proxy=curious.port)
        assert refused["fate"] == "notSent" and refused["reasons"]
        assert "/never-read" not in curious.log.read_text() and server.seen == ["/read"]
    # One that leaves what is in the tunnel alone is no trouble.
    with mitmproxy(tmp_path, "--mode", "regular@127.0.0.1:0", "--ignore-hosts", ".*") as honest:
        assert ask(server.server_port, authorities, "/through", *pins, proxy=honest.port)["status"] == 200
        assert server.seen == ["/read", "/through"]
