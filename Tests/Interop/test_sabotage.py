"""Each fault that countersign-breakable can be started with does what its name says, and the same server without it does not. The program
that ships has no faults. With these faults the lab shows that it would see them (docs/decisions/0031-broken-servers.md)."""

import pathlib
import subprocess
import time

import pytest

import auth_clients
import needs
from backend import Backend
from broken import Breakable, code, stolen, with_mac
from l1_client import signed
from products import BINARY, BREAKABLE
from sampling import sampled
from signing import ReleaseKey
from unsealing import NEXT_ROOT, vault
from unsealing import ROOT as SESSION_ROOT

FAULTS = {}
# test_nodes.py, test_rolling_upgrade.py and test_sqlite_upgrade.py show them.
OF_NODES = ["acknowledged-before-commit", "notify-lost", "schema-expanded", "schema-contracted"]


def fault(name: str):
    """Registers what shows that fault: true where the server has it."""
    def add(show):
        FAULTS[name] = show
        return show
    return add


@fault("nonce-unchecked")
def accepts_a_copy(server: Breakable) -> bool:
    request = server.key.request("POST", "/pay", b"1")
    assert server.takes(request)
    return server.takes(request)


@fault("nonce-before-signature")
def burns_a_nonce(server: Breakable) -> bool:
    request = server.key.request("POST", "/pay", b"1")
    assert server.send(with_mac(request, lambda mac: bytes(len(mac)))).status == 401
    codes = [code(server.send(request)) for _ in range(2)]
    assert codes[1] == "replayed", "a copy is refused all the same"
    return codes[0] == "replayed"


@fault("path-from-header")
def forwards_another_path(server: Breakable) -> bool:
    request = server.key.request("POST", "/pay?to=a", b"1")
    assert server.takes(request)
    request = server.key.request("POST", "/pay?to=a", b"1")
    request = request.replace(b"POST /pay?", b"POST /steal?").replace(b"\r\nHost:", b"\r\nX-Original-Path: /pay\r\nHost:")
    return server.takes(request) and server.backend.seen[-1].target == "/steal?to=a"


@fault("mac-compared-byte-by-byte")
def tells_bytes_by_time(server: Breakable) -> bool:
    def seconds(change) -> float:
        request = with_mac(server.key.request(), change)
        began = time.perf_counter()
        assert server.send(request).status == 401
        return time.perf_counter() - began

    # In turn, so that other load on the machine falls on both.
    rounds = [(seconds(lambda mac: bytes([mac[0] ^ 1]) + mac[1:]), seconds(lambda mac: mac[:-1] + bytes([mac[-1] ^ 1])))
              for _ in range(5)]
    first, last = (min(each) for each in zip(*rounds, strict=True))
    return last - first > 0.1


@fault("replay-in-memory-only")
def accepts_a_copy_after_a_restart(server: Breakable) -> bool:
    request = server.key.request("POST", "/pay", b"1")
    assert server.takes(request) and not server.takes(request)
    server.stop()
    server.start()
    return server.takes(request)


@fault("replay-fails-open")
def accepts_a_copy_without_its_file(server: Breakable) -> bool:
    request = server.key.request("POST", "/pay", b"1")
    assert server.takes(request)
    server.stop()
    (server.data / "replay").unlink()
    server.start()
    return server.takes(request)


@fault("json-first-wins")
def verifies_the_first_member(server: Breakable) -> bool:
    key = server.add_release("demo", "ios", "4", "--scheme", "auth-v4")
    fields = auth_clients.v4(key.secret, key.key_id, "POST", f"{server.url}/pay", {"to": "bob", "amount": 1})
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())

    def taken(body: bytes) -> bool:
        return server.takes(f"POST /pay HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n{head}"
                            f"Content-Length: {len(body)}\r\n\r\n".encode() + body)

    twice = b'{"to": "bob", "amount": 1, "to": "eve"}'
    assert taken(b'{"to": "bob", "amount": 1}')
    assert not taken(b'{"to": "eve", "amount": 1, "to": "bob"}')
    return taken(twice) and server.backend.seen[-1].body == twice


@fault("host-unchecked")
def accepts_another_host(server: Breakable) -> bool:
    assert server.takes(server.key.request())
    return server.takes(ReleaseKey(server.key.key_id, server.key.secret, "attacker.example").request())


@fault("epoch-unchecked")
def accepts_an_earlier_epoch(server: Breakable) -> bool:
    person = server.person()
    key = stolen(server, person)
    assert server.takes(key.request())
    # Two renewals on, the key that was copied is kept no longer.
    for _ in range(2):
        server.clock.advance(2.1)
        assert person.run("request", "/").returncode == 0
    assert stolen(server, person).secret != key.secret
    return server.takes(key.request())


@fault("body-unverified")
def accepts_another_body(server: Breakable) -> bool:
    request = server.key.request("POST", "/pay", b"to=bob")
    return server.takes(request.replace(b"to=bob", b"to=eve")) and server.backend.seen[-1].body == b"to=eve"


@fault("token-is-bearer")
def accepts_a_token(server: Breakable) -> bool:
    key = stolen(server, server.person())
    assert server.takes(key.request())
    key.secret = "A" * 43
    return server.takes(key.request())


@fault("unknown-account-fast")
def answers_unknown_names_sooner(server: Breakable) -> bool:
    client = server.old_accounts("md5")

    def work(name: str) -> float:
        began = server.busy()
        assert client.log_in("md5", name, "wrong") == {"userId": 0}
        return server.busy() - began

    work("known")
    rounds = [(work("nobody"), work("known")) for _ in range(5)]
    unknown, known = (min(each) for each in zip(*rounds, strict=True))
    return unknown < known / 2


@fault("unknown-account-told")
def answers_unknown_names_otherwise(server: Breakable) -> bool:
    client = server.old_accounts("md5")
    known, unknown = [client.call("/login/login.php", f"username={name}&password=wrong") for name in ("known", "nobody")]
    assert (known[0], known[1]) == (200, {"userId": 0})
    return known != unknown


@fault("guesses-unlimited")
def takes_any_number_of_guesses(server: Breakable) -> bool:
    client = server.old_accounts("hmac-md5-time")
    return all(client.call("/login/loginhmac.php", "username=known&password=x")[0] == 200 for _ in range(30))


@fault("retired-accepted")
def accepts_a_retired_release(server: Breakable) -> bool:
    assert server.takes(server.key.request())
    server.admin("release", "retire", server.key.key_id, "--at", "now", "--update-url", "https://example.com/")
    return server.takes(server.key.request())


@fault("legacy-always-on")
def accepts_a_scheme_that_is_off(server: Breakable) -> bool:
    secret, key_id = "an-app's-secret-of-enough-bytes-for-both", "both-schemes"
    server.admin("release", "add", "demo", "--platform", "ios", "--version", "9", "--key-id", key_id, "--secret-stdin",
                 stdin=secret)
    form = "&".join(f"{name}={value}" for name, value in signed({"to": "eve"}, key_id, secret, "ios", "9").items())
    server.send(f"POST /pay HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                f"Content-Length: {len(form)}\r\n\r\n{form}".encode())
    return [seen.get("countersign-scheme") for seen in server.backend.seen] == ["form-md5"]


@fault("once-forgotten")
def forwards_a_keyed_request_twice(server: Breakable) -> bool:
    for _ in range(2):
        assert server.takes(server.key.request("POST", "/pay", b"1", fields=[("idempotency-key", "one")]))
    return len(server.backend.seen) == 2


@fault("identity-from-client")
def believes_the_client_who_it_is(server: Breakable) -> bool:
    request = server.key.request().replace(b"\r\nHost:", b"\r\nCountersign-App: admin\r\nCountersign-Account: 1\r\nHost:")
    assert server.takes(request)
    seen = server.backend.seen[-1]
    return (seen.get("countersign-app"), seen.get("countersign-account")) == ("admin", "1")


@fault("kept-in-clear")
def keeps_roots_in_clear(server: Breakable) -> bool:
    person = server.person()
    assert server.takes(stolen(server, person).request())
    root = vault(pathlib.Path(person.profile))[SESSION_ROOT]
    return any(root in path.read_bytes() for path in server.data.glob("countersign.db*"))


@needs.breakable
@pytest.mark.parametrize("is_broken", sampled([False, True], True), ids=["sound", "broken"])
@pytest.mark.parametrize("name", sampled(FAULTS, "nonce-unchecked"))
def test_a_fault_shows(name, is_broken, tmp_path):
    with Backend() as backend, Breakable(tmp_path, backend, *(["--sabotage", name] if is_broken else [])) as server:
        assert FAULTS[name](server.prepared()) is is_broken
        assert ("SABOTAGED" in server.log_path.read_text()) is is_broken


@pytest.mark.full
@needs.breakable
def test_who_is_honest_is_served_all_the_same(tmp_path):
    """Or an attack could fail because nothing works."""
    with Backend() as backend, Breakable(tmp_path, backend, "--sabotage", ",".join(FAULTS)) as server:
        person = server.prepared().person()
        assert person.run("request", "-X", "POST", "-d", "1", "/pay").returncode == 0
        server.clock.advance(2.1)
        assert person.run("request", "-X", "POST", "-d", "2", "/pay").returncode == 0
        assert [seen.body for seen in backend.seen] == [b"1", b"2"]
        assert NEXT_ROOT in vault(pathlib.Path(person.profile)), "the session was renewed"
        server.stop()
        server.start()
        assert person.run("request", "/balance").returncode == 0


def refused(binary: object, *names: str) -> str:
    """Serves nothing, whatever it takes: the settings are to be printed."""
    done = subprocess.run([str(binary), "serve", "--print-config", *(word for name in names for word in ("--sabotage", name))],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False, text=True)
    assert done.returncode == 2 and done.stdout == ""
    return done.stderr


@pytest.mark.full
@needs.breakable
def test_all_faults_are_shown_here():
    for wrong in ("nonsense", "nonce-unchecked,", "NONCE-UNCHECKED"):
        message = refused(BREAKABLE, "nonce-unchecked", wrong)
        assert set(message.strip().split("expected one of ")[1].split(", ")) == {*FAULTS, *OF_NODES}
    listed = subprocess.run([BREAKABLE, "serve", "--sabotage", "list"], capture_output=True, timeout=60, check=True, text=True)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["NAME", *FAULTS, *OF_NODES]


def test_the_program_that_ships_has_no_fault_to_switch_on():
    assert "no such option" in refused(BINARY, "nonce-unchecked")
    contents = pathlib.Path(BINARY).read_bytes()
    assert b"message-signatures" in contents
    found = [name for name in [*FAULTS, *OF_NODES, "SABOTAGE"] if name.encode() in contents]
    assert not found
