"""Settings by which other machines reach the server, or by which it reaches no backend: each is a warning with its remedy, in
`--check-config`, at the start and in `doctor`. A second server on a data folder is an error that names the first."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

import needs
import processes
from gateway import BINARY, Gateway, run
from ports import reserve_port
from test_metrics import Administered
from waiting import until

# Options, and what their warning says.
EXPOSED = {
    "listen": (("--listen", "0.0.0.0:0"), "--listen: 0.0.0.0:0: without --authority", "`--authority HOST`"),
    "admin": (("--admin", "0.0.0.0:0"), "--admin: 0.0.0.0:0: over plain HTTP other machines can call only /health and /ready",
              "`--admin-tls on`"),
    "insecure admin": (("--admin", "0.0.0.0:0", "--admin-tls", "insecure-off"), "tokens of other machines travel in clear",
                       "`--admin-tls on`"),
    "upstream": (("--upstream", "http://backend.invalid:3000"), "--upstream: backend.invalid: does not resolve", "until it does"),
}
# An address that this machine has and that is not of loopback.
ADDRESS = "192.0.2.55"


@pytest.mark.parametrize("name", EXPOSED)
def test_a_warning_everywhere(tmp_path, name):
    options, text, remedy = EXPOSED[name]
    data = tmp_path / "data"
    run("app", "add", "demo", "--data", data)
    others = [] if "--listen" in options else ["--listen", "127.0.0.1:0"]
    others += [] if "--admin" in options else ["--admin", "off"]
    done = run("serve", "--check-config", "--json", "--data", data, *options, *others)
    problem, = json.loads(done.out)["problems"]
    assert done.returncode == 0 and problem["severity"] == "warning", problem
    assert text in problem["message"] and remedy in problem["message"] and problem["expected"]
    findings = json.loads(run("doctor", "--json", "--data", data, *options, *others).out)["findings"]
    found, = [finding for finding in findings if finding["topic"] == "settings"]
    assert (found["verdict"], text in found["message"]) == ("warning", True)
    log = tmp_path / "errors"
    with open(log, "wb") as errors:
        server = processes.start([BINARY, "serve", "--data", str(data), *options, *others], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=errors)
    try:
        assert server.stdout.readline().startswith(b"listening on ")
        lines = [line for line in log.read_text().splitlines() if text in line]
        # In the log, which is standard error here, and as a line for people.
        assert any(line.startswith("countersign: ") and remedy in line for line in lines), log.read_text()
    finally:
        server.terminate()
        server.communicate(timeout=60)


@pytest.mark.parametrize("options", [
    ("--listen", "0.0.0.0:0", "--authority", "api.example.com"), ("--admin", "127.0.0.1:0"), ("--admin", "[::1]:0"),
    ("--admin", "0.0.0.0:0", "--admin-tls", "on"), ("--upstream", "http://localhost:3000"),
])
def test_no_warning(tmp_path, options):
    done = run("serve", "--check-config", "--json", "--data", tmp_path / "data", *options)
    assert (done.returncode, json.loads(done.out)) == (0, {"valid": True, "problems": []})


def has_address() -> bool:
    done = subprocess.run(["ip", "addr", "replace", f"{ADDRESS}/32", "dev", "lo"], capture_output=True, check=False)
    return done.returncode == 0


@needs.programs("ip")
@needs.machine(has_address(), "the right to give loopback another address")
@pytest.mark.parametrize("mode, allowed", [("off", False), ("insecure-off", True)])
def test_other_machines_over_plain_http(tmp_path, mode, allowed):
    """A connection to an address that is not of loopback comes from that address."""
    gateway = Administered(tmp_path)
    gateway.options = ("--admin-tls", mode)
    gateway.command = lambda *options: [*Gateway.command(gateway, *options), "--admin", f"0.0.0.0:{gateway.admin_port}"]
    with gateway:
        def status(host: str, path: str) -> tuple[int, str]:
            request = urllib.request.Request(f"http://{host}:{gateway.admin_port}{path}",
                                             headers={"Authorization": f"Bearer {gateway.token}"})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        for path in ("/health", "/ready"):
            assert status(ADDRESS, path)[0] == 200, path
        for path in ("/metrics", "/api/v1/status", "/", "/healthy"):
            code, body = status(ADDRESS, path)
            if not allowed:
                assert (code, json.loads(body)["code"]) == (403, "tls"), path
            elif path != "/":
                # The console is served over TLS alone in any case.
                assert code != 403, path
        assert status("127.0.0.1", "/metrics")[0] == 200


def test_a_second_server_on_a_data_folder(tmp_path):
    with Gateway(tmp_path) as gateway:
        done = run("serve", "--data", gateway.data, "--listen", f"127.0.0.1:{reserve_port()}", "--admin", "off")
        assert done.returncode == 1 and not done.out
        assert f"is in use by process {gateway.process.pid}: " in done.err and "countersign restart" in done.err, done.err
        # The process that took over is named after a restart.
        successor = json.loads(gateway.admin("restart", "--json").out)["process"]
        done = run("serve", "--data", gateway.data, "--listen", f"127.0.0.1:{reserve_port()}", "--admin", "off")
        assert done.returncode == 1 and f"is in use by process {successor}: " in done.err, done.err
        until(lambda: gateway.process.poll() is not None, "the first one has not ended")
        os.kill(successor, signal.SIGTERM)
