"""`countersign conformance` against the client in Examples/python: as it is it passes every case, and each of
the faults that are planted in a copy of it is found by the case that is about it, while cases about other
things still pass."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest
from gateway import BINARY, ROOT, run
from products import peer
from sampling import sampled

# Each planted fault runs many cases: minutes on a debug build.

PORT = ROOT / "Examples/python"
SDK_DRIVER = peer("conformance")
DRIVER = (sys.executable, "-B", "-m", "countersign_client.conformance")


@dataclass(frozen=True)
class Fault:
    """Texts of files of the port, each there once, and what takes their place."""

    name: str
    # The case that is about it.
    found_by: str
    # Cases that have nothing to do with it.
    passed: tuple[str, ...]
    # File, text and replacement.
    patches: tuple[tuple[str, str, str], ...]

    def plant(self, folder: pathlib.Path) -> None:
        for file, old, new in self.patches:
            path = folder / "countersign_client" / file
            text = path.read_text()
            assert text.count(old) == 1, f"{self.name}: {old!r} is {text.count(old)} times in {file}"
            path.write_text(text.replace(old, new))


FAULTS = [
    Fault("nonce-reused", "fresh-nonces", ("signed-get", "sign-up"), (
        ("signatures.py", "nonce = nonce or secrets.token_urlsafe(18)",
         "nonce = nonce or (hashlib.sha256(key.key_id.encode()).hexdigest() if "
         "key.key_id.startswith('s_') else secrets.token_urlsafe(18))"),
    )),
    Fault("body-digest-not-covered", "signed-post", ("signed-get", "sign-up"), (
        ("signatures.py", '        components.append("content-digest")\n', ""),
        ("signatures.py", "components += [name for name in request.fields if name not in components]",
         "components += [name for name in request.fields if name not in components\n"
         '                   and (name != "content-digest" or not '
         'key.key_id.startswith("s_"))]'),
    )),
    Fault("method-not-covered", "signed-get", ("sign-up", "wrong-password"), (
        ("signatures.py", 'components = ["@method", "@authority", "@path", "@query"]',
         'components = ["@method", "@authority", "@path", '
         '"@query"][key.key_id.startswith("s_"):]'),
    )),
    Fault("query-left-out", "signed-query", ("signed-get", "signed-post"), (
        ("signatures.py", '"@query": "?" + query}', '"@query": "?"}'),
    )),
    Fault("query-left-out-of-the-base", "known-signature", ("known-login", "signed-get"), (
        ("signatures.py", '"@query": "?" + query}', '"@query": "?"}'),
    )),
    Fault("clock-not-corrected", "wrong-clock", ("signed-get", "forged-time"), (
        ("channel.py", 'if reply.refusal != "stale" or is_last or', "if True or"),
    )),
    Fault("time-of-a-late-answer", "late-time", ("wrong-clock", "signed-get"), (
        ("channel.py", " or time.monotonic() - asked > 5", ""),
    )),
    Fault("attempt-changed-after-a-loss", "lost-refresh-answer", ("refresh", "signed-get"), (
        ("session.py", 'decode(values["attempt"], 16) if "attempt" in values else os.urandom(16)', "os.urandom(16)"),
    )),
    Fault("attempt-at-the-same-time", "lost-refresh-request", ("refresh", "signed-get"), (
        ("session.py", 'max(self._channel.now(), values.get("attempt_time", 0) + 1)',
         'values.get("attempt_time", self._channel.now())'),
    )),
    Fault("attempt-not-kept-before-it-is-sent", "refresh-after-restart", ("refresh", "signed-get"), (
        ("session.py", '"attempt_time": moment, "counter": counter}\n'
         "        self._state.save(session=values)\n", '"attempt_time": moment, "counter": counter}\n'),
    )),
    Fault("copies-with-one-counter", "lost-refresh-request", ("signed-get",), (
        ("session.py", 'values.get("counter", 0) + 1', 'values.get("counter", 1)'),
    )),
    Fault("unsigned-refusal-believed", "unsigned-session-end", ("session-end-of-a-stranger", "refresh"), (
        ("channel.py", "if self.signer is None or self.answer.status < 400", "if self.answer.status < 400"),
        ("session.py", "is_own = signer in self.answer_keys",
         "is_own = signer is None or signer in self.answer_keys"),
    )),
    Fault("end-under-the-authority-believed", "session-end-under-the-authority",
          ("unsigned-session-end", "revoked-session"), (
        ("session.py", "is_own = signer in self.answer_keys", "is_own = signer is not None"),
    )),
    Fault("forged-update-believed", "forged-update-required", ("update-required", "unsigned-session-end"), (
        ("channel.py", 'if reply.refusal == "update-required" else None',
         'if reply.members.get("code") == "update-required" else None'),
        ("channel.py", "if reply.signer is not None and link != ", "if link != "),
    )),
    Fault("answer-signature-not-checked", "answer-of-a-stranger", ("unsigned-answer", "signed-get"), (
        ("signatures.py", "            except InvalidSignature:\n                pass\n",
         "            except InvalidSignature:\n                return key\n"),
    )),
    Fault("answer-body-not-checked", "altered-answer-body", ("update-required", "altered-refresh-answer"), (
        ("signatures.py", 'if not hmac.compare_digest(answer.fields.get("content-digest", ""), '
         "content_digest(answer.body)):", "if False:"),
    )),
    Fault("answer-not-bound", "unbound-answer", ("answer-of-a-stranger", "signed-get"), (
        ("signatures.py", ", *binding]", "]"),
    )),
    Fault("unsigned-answer-believed", "unsigned-answer", ("answer-of-a-stranger", "signed-get"), (
        ("channel.py", "        if reply.signer is None:\n"
         "            raise", "        if False:\n"
         "            raise"),
    )),
    Fault("pin-not-checked", "unknown-certificate", ("pinned-key-expired", "backup-pin"), (
        ("transport.py", "if pin(certificate) not in setup.pins:", "if False:"),
    )),
    Fault("host-not-checked", "pinned-key-for-another-host", ("pinned-key-expired", "unknown-certificate"), (
        ("transport.py", "    if not is_named:\n", "    if False:\n"),
    )),
    Fault("dates-not-checked", "pinned-key-expired", ("pinned-key-for-another-host", "signed-get"), (
        ("transport.py", "if not certificate.not_valid_before_utc <= now <= "
         "certificate.not_valid_after_utc:", "if False:"),
    )),
    Fault("backup-pin-forgotten", "backup-pin", ("unknown-certificate", "signed-get"), (
        ("setup.py", '[*members["pins"], *members.get("backup_pins", [])]', '[*members["pins"]]'),
    )),
    Fault("manifest-signature-not-checked", "pin-manifest", ("unknown-certificate", "backup-pin"), (
        ("pins.py", '.verify(signature, b"countersign pin manifest 1\\n" + data)\n', "\n"),
    )),
    Fault("manifest-version-not-compared", "pin-manifest", ("unknown-certificate", "backup-pin"), (
        ("pins.py", "    if version <= channel.pins_version:\n", "    if False:\n"),
    )),
    Fault("manifest-time-not-checked", "pin-manifest", ("unknown-certificate", "pinned-key-expired"), (
        ("pins.py", '    if not manifest["not_before"] <= channel.now() <= manifest["not_after"]:\n',
         "    if False:\n"),
    )),
    Fault("manifest-of-another-app-taken", "pin-manifest", ("unknown-certificate", "backup-pin"), (
        ("pins.py", '    if manifest["app"] != setup.app:\n', "    if False:\n"),
    )),
    Fault("manifest-pins-added-to-the-built-in-ones", "pin-manifest", ("unknown-certificate", "backup-pin"), (
        ("channel.py", 'pins=frozenset(kept["pins"]))', 'pins=self.setup.pins | frozenset(kept["pins"]))'),
    )),
    Fault("manifest-not-kept", "pin-manifest", ("unknown-certificate", "refresh-after-restart"), (
        ("pins.py", '    channel.state.save(pins={"version": version, "pins": pins})\n',
         '    channel.state.values["pins"] = {"version": version, "pins": pins}\n'),
    )),
    Fault("former-authority-key-accepted", "next-authority-key", ("sign-up", "answer-of-a-stranger"), (
        ("channel.py", "            return [following]\n",
         "            return [self.setup.authority_key, following]\n"),
    )),
    Fault("next-authority-key-not-kept", "next-authority-key", ("sign-up", "answer-of-a-stranger"), (
        ("channel.py", "            self.state.save(authority_key_in_use=encode(key))\n",
         '            self.state.values["authority_key_in_use"] = encode(key)\n'),
    )),
    Fault("password-sent", "no-secret-on-the-wire", ("sign-up", "log-in"), (
        ("client.py", '"account": name, "request": encode(registration.request)}',
         '"account": name, "password": password, "request": '
         "encode(registration.request)}"),
    )),
    Fault("wrong-password-not-told", "wrong-password", ("log-in", "known-login"), (
        ("opaque.py", 'raise ClientError("wrong-credentials", "the envelope does not open")',
         'raise ClientError("network", "the envelope does not open")'),
    )),
    Fault("idempotency-key-changed", "idempotency-key", ("signed-post", "lost-call-answer"), (
        ("client.py", "            session = self.session\n"
         "            used = session.token\n"
         "            try:\n"
         "                reply = self._channel.send(", "            session = self.session\n"
         "            used = session.token\n"
         "            if once:\n"
         '                fields["idempotency-key"] = encode(os.urandom(16))\n'
         "            try:\n"
         "                reply = self._channel.send("),
    )),
    Fault("redirect-followed", "redirect", ("signed-get", "lost-call-answer"), (
        ("transport.py", "        response = connection.getresponse()\n",
         "        response = connection.getresponse()\n"
         "        if response.status == 307:\n"
         "            import dataclasses, urllib.parse\n"
         "            there = urllib.parse.urlsplit(urllib.parse.urljoin(setup.url, "
         "response.getheader('location')))\n"
         "            setup = dataclasses.replace(setup, url=f'https://{there.netloc}')\n"
         "            request.target = there.path\n"
         "            return exchange(request, setup)\n"),
    )),
    Fault("half-an-answer-taken", "truncated-answer", ("signed-get", "lost-call-answer"), (
        ("transport.py", "        if response.length:\n", "        if False:\n"),
    )),
    Fault("answers-without-a-bound", "endless-answer", ("signed-get", "refresh"), (
        ("transport.py", "LONGEST_BODY = 8 << 20", "LONGEST_BODY = 1 << 32"),
    )),
]


def conform(port: pathlib.Path, *options: str, timeout: float = 300) -> tuple[int, dict, str]:
    """The exit status, the report, and what was said on the way."""
    done = subprocess.run(
        [BINARY, "conformance", "--json", *options, "--", *DRIVER], capture_output=True, text=True,
        timeout=timeout, env={**os.environ, "PYTHONPATH": str(port)}, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def test_nothing_is_left_behind(tmp_path: pathlib.Path):
    done = run("conformance", "--case", "log-in", "--", *DRIVER, environment={"PYTHONPATH": str(PORT), "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.err
    assert list(tmp_path.iterdir()) == []


def outcomes(report: dict) -> dict[str, str]:
    return {case["name"]: case["outcome"] for case in report["cases"]}


@pytest.mark.full
def test_the_port_passes_every_case():
    status, report, said = conform(PORT, "--keep-going")
    assert status == 0, said
    listed = json.loads(run("conformance", "--list", "--json").out)
    assert outcomes(report) == {case["name"]: "passed" for case in listed}
    assert len(listed) >= 50 and report["passed"] == len(listed)


@pytest.mark.full
def test_the_sdk_passes_every_case_that_it_can_be_asked():
    done = run("conformance", "--json", "--keep-going", "--", *SDK_DRIVER, timeout=400)
    assert done.returncode == 0, done.err
    left = {name for name, outcome in outcomes(json.loads(done.out)).items() if outcome != "passed"}
    # What those ask for, the SDK computes inside; Vectors/ and the units beside it prove it.
    assert left and all(name.startswith("known-") for name in left)


@pytest.mark.parametrize("fault", sampled(FAULTS, FAULTS[0]), ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(fault: Fault, tmp_path: pathlib.Path):
    shutil.copytree(PORT / "countersign_client", tmp_path / "countersign_client")
    fault.plant(tmp_path)
    names = [fault.found_by, *fault.passed]
    status, report, said = conform(tmp_path, "--keep-going", "--case", ",".join(names))
    assert status == 1, said
    assert outcomes(report) == {fault.found_by: "failed", **{name: "passed" for name in fault.passed}}, said
    found = next(case for case in report["cases"] if case["name"] == fault.found_by)
    assert found["expected"] and found["observed"] and found["section"]
    assert f'docs/protocol.md, "{found["section"]}"' in said


@pytest.mark.full
def test_a_part_that_is_left_out_is_said(tmp_path: pathlib.Path):
    shutil.copytree(PORT / "countersign_client", tmp_path / "countersign_client")
    features = ("conformance.py", '"device-signature", "change-password", "pin-manifest"', '"device-signature"')
    Fault("", "", (), (features,)).plant(tmp_path)
    status, report, said = conform(tmp_path, "--case", "changed-password,device-signed-call,pin-manifest")
    assert status == 0, said
    left_out = ("changed-password", "pin-manifest")
    assert outcomes(report) == {"device-signed-call": "passed", **dict.fromkeys(left_out, "not-implemented")}
    assert report["not_implemented"] == 2
    assert all(f"{name}: not implemented" in said for name in left_out)


@pytest.mark.full
def test_a_run_ends_with_the_first_failure_unless_told(tmp_path: pathlib.Path):
    shutil.copytree(PORT / "countersign_client", tmp_path / "countersign_client")
    Fault("", "", (), (("encoding.py", 'unicodedata.normalize("NFC", spaced)', "spaced"),)).plant(tmp_path)
    cases = ("--case", "known-password,known-account")
    _, report, _ = conform(tmp_path, *cases)
    assert outcomes(report) == {"known-password": "failed"} and report["not_run"] == 1
    _, report, _ = conform(tmp_path, *cases, "--keep-going")
    assert outcomes(report) == {"known-password": "failed", "known-account": "passed"}
    assert report["not_run"] == 0


@pytest.mark.full
def test_a_driver_that_does_not_speak_the_protocol_fails_the_case():
    for driver in ("exit 1", "echo no JSON", "echo '{}'", "cat", "echo '{\"ok\":{}}'"):
        done = run("conformance", "--case", "known-refresh", "--", "sh", "-c", driver)
        assert done.returncode == 1, done.err
        assert "✗ known-refresh" in done.err and "driver" in done.err


def test_wrong_use():
    for options, said in [
        ((), "COMMAND is missing"),
        (("--case", "lost-refresh-anser", "--", "true"), "did you mean `lost-refresh-answer`?"),
        (("--cases",), "did you mean `--case`?"),
    ]:
        done = run("conformance", *options)
        assert done.returncode == 2 and said in done.err, done.err
    done = run("conformance", "--case", "sign-up", "--", "/nonexistent/driver")
    assert done.returncode == 1 and "cannot be started" in done.err


def test_the_document_names_every_case():
    text = (ROOT / "docs/conformance.md").read_text()
    protocol = (ROOT / "docs/protocol.md").read_text().replace("`", "")
    for case in json.loads(run("conformance", "--list", "--json").out):
        assert f"`{case['name']}`" in text, case["name"]
        assert f"## {case['section']}\n" in protocol, case["section"]


def test_the_state_is_its_owners_alone_and_the_command_line_works(tmp_path: pathlib.Path, gateway):
    gateway.add_app("demo", require="session", registration="open")
    made = gateway.admin("release", "add", "demo", "--platform", "other", "--version", "1.0", "--json").out
    release = json.loads(made)
    pin = next(line for line in gateway.started if line.startswith("spki_pin ")).split()[1]
    setup, state = tmp_path / "setup.json", tmp_path / "state.json"
    setup.write_text(json.dumps({**release, "url": f"https://127.0.0.1:{gateway.port}", "pins": [pin]}))

    def client(*words: str, typed: str = "") -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-B", "-m", "countersign_client", "--setup", str(setup), "--state", str(state),
             "--password-stdin", *words], input=typed, capture_output=True, text=True, timeout=60, cwd=PORT,
            check=False)

    assert client("sign-up", "Alice", typed="right\n").returncode == 0
    refused = client("log-in", "alice", typed="wrong\n")
    assert refused.returncode == 1 and "wrong-credentials" in refused.stderr
    assert json.loads(client("log-in", "alice", typed="right\n").stdout)["state"] == "signed-in"
    assert state.stat().st_mode & 0o777 == 0o600
    assert json.loads(client("call", "/hello?a=1").stdout)["target"] == "/hello?a=1"
    assert json.loads(client("refresh").stdout)["epoch"] == 1
    assert json.loads(client("call", "-X", "POST", "-d", "{}", "--once", "/hello").stdout)["method"] == "POST"
    refused = client("update-pins")
    assert refused.returncode == 1 and "manifest_key" in refused.stderr
    assert json.loads(client("log-out").stdout)["state"] == "signed-out"


@pytest.mark.full
def test_the_state_is_written_over_no_file_or_link_that_is_there(tmp_path: pathlib.Path):
    state, new, other = tmp_path / "state.json", tmp_path / "state.new", tmp_path / "other"
    save = ("import pathlib, sys; from countersign_client.state import State; "
            "State(pathlib.Path(sys.argv[1])).save(secret='x')")

    def write() -> None:
        subprocess.run([sys.executable, "-B", "-c", save, str(state)], check=True, timeout=60, cwd=PORT)

    new.write_text("left behind")
    new.chmod(0o666)
    write()
    assert state.stat().st_mode & 0o777 == 0o600
    new.symlink_to(other)
    write()
    assert not other.exists() and not state.is_symlink()
    assert json.loads(state.read_text()) == {"secret": "x"}
