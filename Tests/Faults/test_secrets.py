"""Over twenty secrets, planted in all the ways in which the system is given one, and looked for, in every usual encoding, where none may
be: database, journal, replay and limits files, logs, what commands and the administrators' listener show, refusals with
their explanations, and what a crash says."""

import dataclasses
import json
import os
import secrets
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

import needs
import processes
from bearer import asked, bearing, login
from gateway import Gateway, run
from l1_client import signed
from l5_client import OldClient, kept
from leaks import files, find, memory, spellings
from person import Person
from ports import reserve_port
from signing import decode_secret
from unsealing import AGREEMENT_KEY, ROOT, SIGNING_KEY, deployment_keys, device_keys, request_key, vault
from waiting import until

RUNGS = ("plain-get", "base64", "md5", "hmac-md5")
# What is there to hold a secret, of mode 0600; nowhere else may it be.
HOMES = ("master.key", "admin-token", "tls/key.pem")


def word() -> str:
    return secrets.token_urlsafe(24).replace("-", "x")


@dataclasses.dataclass
class Planted:
    gateway: Gateway
    admin: str
    # By name; `passing` are those that a server has no more use for once it has answered.
    secrets: dict[str, bytes] = dataclasses.field(default_factory=dict)
    passing: dict[str, bytes] = dataclasses.field(default_factory=dict)
    shown: dict[str, bytes] = dataclasses.field(default_factory=dict)

    def shows(self, name: str, done: subprocess.CompletedProcess) -> None:
        self.shown[name] = done.stdout + done.stderr


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    admin = f"127.0.0.1:{reserve_port()}"
    gateway = Gateway(tmp_path_factory.mktemp("secrets"), "--login-address", "1000/1s", "--admin", admin)
    with gateway:
        made = Planted(gateway, admin)
        gateway.add_app("demo", registration="open", password_login="on", slots="unlimited", debug="on",
                        schemes="message-signatures,sigv4,form-md5,auth-v1", legacy_login="on", legacy_session="authority")
        apps(made)
        devices(made, tmp_path_factory.mktemp("people"))
        bearers(made)
        old_clients(made)
        made.secrets |= deployment_keys(gateway.data)
        key = serialization.load_pem_private_key((gateway.data / "tls/key.pem").read_bytes(), None)
        made.secrets["TLS key"] = key.private_numbers().private_value.to_bytes(32, "big")
        made.secrets["master key"] = decode_secret((gateway.data / "master.key").read_text().strip())
        made.secrets["administrators' token"] = (gateway.data / "admin-token").read_bytes().strip()
        look(made)
        yield made


def apps(made: Planted) -> None:
    """Keys of releases: made here, brought along, the next one, and the key of old clients' logins."""
    gateway, legacy = made.gateway, word()
    gateway.key = gateway.add_release()
    made.secrets["release key"] = decode_secret(gateway.key.secret)
    following = json.loads(gateway.admin("release", "rotate", gateway.key.key_id, "--json").out)["secret"]
    made.secrets["next release key"] = decode_secret(following)
    for version, scheme in enumerate(("sigv4", "form-md5", "auth-v1")):
        made.secrets[f"{scheme} key"] = word().encode()
        gateway.admin("release", "add", "demo", "--platform", "ios", "--version", f"0.{version}", "--scheme", scheme,
                      "--key-id", f"ID-of-{scheme}", "--secret-stdin", stdin=made.secrets[f"{scheme} key"])
    gateway.admin("app", "policy", "demo", "--set-secret", "legacy-key", stdin=legacy)
    made.secrets["legacy key"] = legacy.encode()


def devices(made: Planted, folder) -> None:
    """OPAQUE: sign-up, login, refresh-free calls, a wrong password, another password, and a reset."""
    gateway, first, second, third = made.gateway, word(), word(), word()
    person = Person(gateway, folder / "alice").signs_up(first).logs_in(password=first)
    person.logs_in(password=first)
    made.secrets["profile's release key"] = decode_secret(person.release["secret"])
    keeps, device = vault(folder / "alice/profile"), device_keys(folder / "alice/profile")
    made.secrets |= {"session root": keeps[ROOT], "request key": request_key(keeps[ROOT]),
                     "device's signing key": scalar(device[SIGNING_KEY]),
                     "device's agreement key": scalar(device[AGREEMENT_KEY])}
    wrong = word()
    made.shows("a wrong password", person.run("login", "--account", "alice", "--password-stdin", stdin=wrong + "\n"))
    made.shows("status", person.run("status", "--json"))
    made.shows("sessions", person.run("sessions", "--json"))
    answer, body = word(), word()
    person.calls("-d", body, "-H", f"Idempotency-Key: {secrets.token_hex(8)}", "-H", f"X-Answer: {answer}", "/pay")
    changed = person.run("password", "--password-stdin", stdin=f"{first}\n{second}\n")
    assert changed.returncode == 0, changed.err
    code = json.loads(gateway.admin("account", "reset", "demo", "alice", "--json").out)["reset_code"]
    reset = person.run("signup", "--account", "alice", "--password-stdin", "--reset-code-stdin", stdin=f"{code}\n{third}\n")
    assert reset.returncode == 0, reset.err
    made.passing |= {"password": first.encode(), "wrong password": wrong.encode(), "changed password": second.encode(),
                     "password after a reset": third.encode(), "reset code": code.encode()}
    made.secrets |= {"body that was done once": body.encode(), "answer that is kept": answer.encode()}


def scalar(pkcs8: bytes) -> bytes:
    return serialization.load_der_private_key(pkcs8, None).private_numbers().private_value.to_bytes(32, "big")


def bearers(made: Planted) -> None:
    """Tokens that are sent: from the password, right and wrong, and renewed."""
    gateway, name = made.gateway, "user-0"
    made.passing["password by standard input"] = f"password of {name}".encode()
    gateway.admin("account", "add", "demo", name, "--password-stdin", stdin=f"password of {name}\n")
    with gateway.connect() as connection:
        said, answer = asked(connection, login(gateway, name))
        assert said == "accepted"
        first = json.loads(answer.body)
        assert asked(connection, bearing(gateway, first["token"]))[0] == "accepted"
        body = json.dumps({"login_token": first["login_token"]}).encode()
        said, answer = asked(connection, gateway.key.request("POST", "/countersign/v1/token", body))
        assert said == "accepted", answer
        second = json.loads(answer.body)
        assert asked(connection, bearing(gateway, second["token"]))[0] == "accepted"
        # Bodies that are not what a route expects, and a token where none belongs: nothing repeats them.
        misplaced = word()
        for wrong in (f'{{"password": "{misplaced}", ', f'{{"account": "{misplaced}", "password": 7}}',
                      f'["{misplaced}"]', f'{{"device": {{"class": "{misplaced}"}}}}'):
            connection.send(gateway.key.request("POST", "/countersign/v1/login/password", wrong.encode()))
            answer = connection.answer()
            assert answer.status == 400, answer
            made.shown[f"the refusal of {len(made.shown)}"] = answer.body
        said, answer = asked(connection, bearing(gateway, first["token"][:-4] + "AAAA"))
        assert said == "session-ended"
        made.shown["the refusal of a token"] = answer.body
        # Explained, since the policy says debug: what was signed, and not under what.
        request = gateway.key.request("GET", "/explained").replace(b"/explained", b"/explainee", 1)
        said, answer = asked(connection, request)
        assert said == "bad-signature" and b"explain" in answer.body
        made.shown["an explanation"] = answer.body
    made.secrets |= {"bearer token": second["token"].encode(), "login token": second["login_token"].encode(),
                     "renewed token": first["token"].encode(), "renewed login token": first["login_token"].encode()}
    made.passing["password in a broken body"] = misplaced.encode()


def old_clients(made: Planted) -> None:
    """The login ladder: the password as each client sends it, and the tokens that it gets, in a query, too."""
    gateway, salt, key = made.gateway, "", made.secrets["legacy key"].decode()
    client = OldClient(gateway.url, str(gateway.data / "tls/certificate.pem"))
    for number, rung in enumerate(RUNGS):
        password = word()
        value = kept(rung, password, salt, key)
        row = {"name": f"old-{rung}", "user_id": 100 + number, "rung": rung, "value": value}
        gateway.admin("account", "import", "demo", "-", stdin=json.dumps(row))
        answer = client.log_in(rung, f"old-{rung}", value)
        assert answer["userId"] == 100 + number, answer
        made.passing |= {f"password of {rung}": password.encode(), f"value of {rung}": value.encode()}
        made.secrets |= {f"token of {rung}": answer["token"].encode(), f"login token of {rung}": answer["loginToken"].encode()}
    parameters = signed({"token": answer["token"]}, "ID-of-form-md5", made.secrets["form-md5 key"].decode(), "ios", "0.1")
    assert client.call("/api", "&".join(f"{name}={value}" for name, value in parameters.items()), "GET")[0] == 200
    assert client.new_token(answer["loginToken"])["expiresIn"] > 0


def look(made: Planted) -> None:
    """What every command shows."""
    gateway, key_id = made.gateway, made.gateway.key.key_id
    for words in (("app", "list"), ("app", "policy", "demo"), ("release", "list", "demo"), ("release", "policy", key_id),
                  ("release", "impact", key_id), ("account", "list", "demo"), ("session", "list", "demo", "--ended"),
                  ("meter", "demo"), ("audit", "list"), ("audit", "verify"), ("assertion", "keys")):
        for more in ((), ("--json",)):
            made.shows(" ".join(words + more), gateway.admin(*words, *more))
    token = made.secrets["administrators' token"].decode()
    for fields in ({"Authorization": f"Bearer {token}"}, {"Authorization": f"Bearer {token[:-1]}"}):
        request = urllib.request.Request(f"http://{made.admin}/metrics", headers=fields)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                made.shown["metrics"] = answer.read()
        except urllib.error.HTTPError as refusal:
            made.shown["the refusal of metrics"] = refusal.read()
    made.shows("settings", run("serve", "--print-config", "--data", gateway.data))


def everywhere(made: Planted) -> list[str]:
    gateway, wanted = made.gateway, made.secrets | made.passing
    found = find(wanted, "the log", gateway.log_path.read_bytes() + "\n".join(gateway.started).encode())
    for places in (files(gateway.data, *HOMES), made.shown):
        for place, content in places.items():
            found += find(wanted, place, content)
    return found


def test_no_secret_is_anywhere(planted):
    wanted = planted.secrets | planted.passing
    assert len(wanted) > 20 and all(len(secret) >= 12 for secret in wanted.values())
    names = files(planted.gateway.data, *HOMES)
    assert {"countersign.db", "countersign.db-wal", "replay", "login-limits"} <= names.keys()
    assert all(planted.shown.values()) and planted.gateway.events()
    assert everywhere(planted) == []


def test_homes_hold_no_others_secret(planted):
    """And each of them holds its own: the search finds what is there."""
    owns = {"master.key": {"master key"}, "admin-token": {"administrators' token"}, "tls/key.pem": set()}
    for home, expected in owns.items():
        found = find(planted.secrets | planted.passing, home, (planted.gateway.data / home).read_bytes())
        assert {line.split(": ")[1].rsplit(" (", 1)[0] for line in found} == expected


@pytest.mark.parametrize("place", ["countersign.db-wal", "the log", "audit list --json"])
def test_a_leak_would_be_found(planted, place):
    """However it is written, and wherever within what is there."""
    secret = planted.secrets["session root"]
    if place == "the log":
        content = planted.gateway.log_path.read_bytes()
    else:
        content = (files(planted.gateway.data) | planted.shown)[place]
    for spelling, text in spellings(secret).items():
        at = secrets.randbelow(len(content))
        found = find({"session root": secret}, place, content[:at] + text + content[at:])
        assert any("session root" in line for line in found), spelling
    assert find({"session root": secret}, place, content) == []


def without_ptrace(*command: str) -> list[str]:
    """As a system user that may read only processes that allow it: root without the capability."""
    return ["setpriv", "--bounding-set", "-sys_ptrace", *command] if os.getuid() == 0 else [*command]


def await_program(process: subprocess.Popen, *, name: str, seconds: float = 10) -> None:
    """Waits until it runs the program of that name: `setpriv`, which starts it, still has the
    capability."""
    until(lambda: Path(f"/proc/{process.pid}/comm").read_text().strip() == name,
          lambda: f"process {process.pid} did not become {name}")


def reads_memory(process: int) -> bool:
    done = subprocess.run(without_ptrace("dd", f"if=/proc/{process}/mem", "count=0"), capture_output=True, check=False)
    return done.returncode == 0


def test_its_memory_is_its_own(tmp_path):
    """Other processes of the same user can read it of a program that does not forbid it, and not of the server: nor does any handler
    of cores, which the limit on the size of core files does not reach."""
    gateway = Gateway(tmp_path).start(prefix=tuple(without_ptrace()))
    sleeper = processes.start(without_ptrace("sleep", "60"))
    try:
        await_program(sleeper, name="sleep")
        assert reads_memory(sleeper.pid), "nobody's memory can be read here: this shows nothing"
        assert not reads_memory(gateway.process.pid)
    finally:
        sleeper.kill()
        sleeper.wait()
        gateway.stop()


@needs.machine(os.getuid() == 0, "root, who alone reads the memory of a process that forbids it")
def test_what_a_core_would_hold(planted):
    """Keys that it works with, and what was sent to it lately; but no password that was proved without being sent."""
    held = memory(planted.gateway.process.pid)
    assert find({"master key": planted.secrets["master key"]}, "memory", held), "this is not its memory"
    proved = {name: planted.passing[name] for name in ("password", "changed password", "password after a reset", "wrong password")}
    assert find(proved, "memory", held) == []


@pytest.mark.parametrize("sent", [signal.SIGABRT, signal.SIGSEGV], ids=["SIGABRT", "SIGSEGV"])
def test_what_a_crash_says(planted, tmp_path, sent):
    """In the middle of a run; afterwards there is no core file."""
    gateway = planted.gateway
    before = len(gateway.log_path.read_bytes())
    gateway.process.send_signal(sent)
    _, status = os.waitpid(gateway.process.pid, 0)
    gateway.process.returncode = -os.WTERMSIG(status)
    try:
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == sent
        assert not os.WCOREDUMP(status)
        said = gateway.log_path.read_bytes()[before:]
        assert find(planted.secrets | planted.passing, "the crash", said) == []
        assert everywhere(planted) == []
    finally:
        gateway.start()
