"""An https backend under authorities of the operator's own, and one that wants a certificate of the gateway: what does not hold sends nothing,
what cannot be read is named at the start, and SIGHUP takes up new files."""

import json
import signal

import pytest

from authority import Authority
from gateway import Gateway, run
from tls_backend import TLSBackend
from waiting import until


@pytest.fixture
def files(tmp_path):
    class Files:
        ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other", "other")
        server = ours.issue("server")
        client = ours.issue("client")
        stranger = other.issue("stranger")
    return Files


def start(tmp_path, backend: TLSBackend, *options: object) -> Gateway:
    folder = tmp_path / f"gateway{len(list(tmp_path.glob('gateway*')))}"
    gateway = Gateway(folder, "--tls", "off", "--workers", 1, "--upstream", backend.url, *options).start()
    gateway.add_app("demo")
    gateway.key = gateway.add_release()
    return gateway


def outcome(front: Gateway) -> tuple[int, str]:
    answer = front.send(front.key.request())
    return answer.status, "" if answer.status == 200 else json.loads(answer.body)["code"]


def failures(backend: TLSBackend, wait: float = 10) -> list[str]:
    """What became of the handshakes that failed: the backend hears of it a moment after the gateway has answered."""
    until(lambda: backend.failures)
    return backend.failures


REFUSED = (502, "upstream-failed")


def test_the_authorities_of_the_setting_and_no_others(tmp_path, files):
    with TLSBackend(*files.server) as backend:
        front = start(tmp_path, backend, "--upstream-ca", files.ours.path)
        assert outcome(front) == (200, "")
        assert front.stop() == 0
    with TLSBackend(*files.server) as backend:
        front = start(tmp_path, backend, "--upstream-ca", files.other.path)
        assert outcome(front) == REFUSED
        assert failures(backend) and not backend.seen and backend.handshakes == 0
        assert front.stop() == 0
        assert "TLS handshake failed: unable to get local issuer certificate" in front.log_path.read_text()


def test_a_backend_that_asks_for_a_certificate(tmp_path, files):
    pair = ",".join(map(str, files.client))
    with TLSBackend(*files.server, client_authority=files.ours.path) as backend:
        front = start(tmp_path, backend, "--upstream-ca", files.ours.path)
        assert outcome(front) == REFUSED
        assert failures(backend) and not backend.seen
        assert front.stop() == 0
        front = start(tmp_path, backend, "--upstream-ca", files.ours.path, "--upstream-certificate", pair)
        for _ in range(3):
            assert outcome(front) == (200, "")
        assert len(backend.seen) == 3 and backend.handshakes == 1
        assert front.stop() == 0
        wrong = ",".join(map(str, files.stranger))
        front = start(tmp_path, backend, "--upstream-ca", files.ours.path, "--upstream-certificate", wrong)
        assert outcome(front) == REFUSED
        assert len(backend.seen) == 3
        assert front.stop() == 0


def test_a_reload_takes_up_new_files(tmp_path, files):
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(files.other.path.read_bytes())
    with TLSBackend(*files.server) as backend:
        front = start(tmp_path, backend, "--upstream-ca", trusted)
        assert outcome(front) == REFUSED
        trusted.write_bytes(files.ours.path.read_bytes())
        front.process.send_signal(signal.SIGHUP)
        until(lambda: outcome(front) == (200, ""))
        # And back: a connection that is open does not outlive the trust it was opened under, busy or idle.
        trusted.write_bytes(files.other.path.read_bytes())
        front.process.send_signal(signal.SIGHUP)
        until(lambda: outcome(front) == REFUSED)
        until(lambda: not backend.open)
        seen = len(backend.seen)
        assert outcome(front) == REFUSED and len(backend.seen) == seen
        # A file that cannot be read changes nothing, and is named.
        trusted.write_text("nonsense")
        front.process.send_signal(signal.SIGHUP)
        until(lambda: f"--upstream-ca: {trusted}: " in front.log_path.read_text())
        assert front.stop() == 0


@pytest.mark.parametrize(("options", "code", "text"), [
    (["--upstream-ca", "{missing}"], 1, "--upstream-ca: {missing}: not a PEM file of authorities' certificates"),
    (["--upstream-ca", "{key}"], 1, "--upstream-ca: {key}: "),
    (["--upstream-certificate", "{missing},{key}"], 1, "--upstream-certificate: {missing}: not a PEM certificate chain"),
    (["--upstream-certificate", "{certificate},{missing}"], 1, "--upstream-certificate: {missing}: not a PEM private key"),
    (["--upstream-certificate", "{certificate},{other}"], 1, "--upstream-certificate: {other}: is not the key"),
    (["--upstream-certificate", "{certificate}"], 2, "expected CERTIFICATE,KEY"),
    (["--upstream", "http://localhost:1", "--upstream-ca", "{certificate}"], 2, "--upstream-ca: expected an https://"),
    (["--limit-upstream-connections", "1", "--workers", "2"], 2, "--limit-upstream-connections: 1: expected at least one for each"),
], ids=["no file", "no certificate", "no chain", "no key", "another key", "half", "http", "too few"])
def test_what_is_wrong_is_named_at_the_start(tmp_path, files, options, code, text):
    names = {"missing": tmp_path / "missing.pem", "certificate": files.client[0], "key": files.client[1],
             "other": files.stranger[1]}
    done = run("serve", "--data", tmp_path / "data", "--listen", "127.0.0.1:0", "--admin", "off", "--upstream",
               "https://localhost:1", *(option.format(**names) for option in options))
    assert done.returncode == code and text.format(**names) in done.err, done.err
