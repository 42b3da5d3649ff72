"""Accounts and sessions with the real server and the command-line client, from the first sign-up to the last sign-out."""

import json
import time

import pytest

from clock import Clock
from dropping import DroppingProxy
from gateway import Gateway, run
from person import PASSWORD, Person
from waiting import until


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("accounts")
    with Gateway(folder, clock=Clock(folder)) as running:
        running.add_app("demo", registration="open")
        yield running


@pytest.fixture
def alice(served, tmp_path, request):
    """An account of the test's own, signed in."""
    return Person(served, tmp_path / "alice", request.node.name[:60].lower()).signs_up().logs_in()


def refreshes(gateway: Gateway, wait_for: int = 0) -> int:
    """How many the log has, once it has as many; the log is written after the answers."""
    def count() -> int:
        return sum(event.get("path", "").endswith("/v1/token") and event["status"] == 200 for event in gateway.events())

    until(lambda: count() >= wait_for, "a refresh")
    return count()


@pytest.fixture
def short(served):
    """Tokens that run out after two seconds."""
    served.admin("app", "policy", "demo", "--set", "token-lifetime=2s")
    yield 2.1
    served.admin("app", "policy", "demo", "--set", "token-lifetime=2h")


def test_from_sign_up_to_sign_out(served, tmp_path):
    alice = Person(served, tmp_path / "alice", "first").signs_up()
    assert alice.run("status").returncode == 1
    alice.logs_in("--device-class", "phone", "--device-name", "Alice's phone")
    echoed = alice.calls("/hello")
    assert echoed["headers"]["countersign-account"] == "name:first"
    status = alice.status()
    assert status["signed_in"] and status["account"] == "first" and status["kind"] == "device"
    assert status["server"]["session"] == status["session"] == echoed["headers"]["countersign-session"]
    assert status["device"] == {"class": "phone", "name": "Alice's phone"}
    assert "countersign-account" not in alice.calls("--as-release", "/hello")["headers"]
    done = alice.run("logout")
    assert (done.returncode, done.out) == (0, "signed out\n")
    assert alice.run("status").returncode == 1
    assert "no account is signed in" in alice.run("logout").err


def test_names_are_one_account_however_they_are_written(served, tmp_path):
    alice = Person(served, tmp_path / "alice", "\u00c5ngstr\u00f6m").signs_up()
    alice.name = "A\u030angstro\u0308m"
    assert alice.logs_in().status()["account"] == "\u00c5ngstr\u00f6m"
    done = alice.run("signup", "--account", alice.name, "--password-stdin", stdin=PASSWORD)
    assert done.returncode == 1 and "name-taken" in done.err


def test_a_second_device_ends_the_first(served, alice, tmp_path):
    tablet = Person(served, tmp_path / "tablet", alice.name, release=alice.release).logs_in("--device-class", "tablet")
    done = alice.run("request", "/hello")
    assert done.returncode == 1 and done.out == ""
    assert "replaced by a login on another device (tablet)" in done.err
    assert alice.run("status").returncode == 1
    assert tablet.calls("/hello")["headers"]["countersign-account"] == f"name:{alice.name}"


def test_the_loser_learns_by_status_who_took_its_place(served, alice, tmp_path):
    Person(served, tmp_path / "tablet", alice.name, release=alice.release).logs_in("--device-class", "watch")
    before = int(time.time())
    status = alice.status()
    assert not status["signed_in"] and status["reason"] == "replaced" and status["by"] == "watch"
    assert abs(status["at"] - before) < 30


def test_a_token_that_ran_out_is_renewed_unseen(served, tmp_path, short):
    alice = Person(served, tmp_path / "alice", "renewing").signs_up().logs_in()
    for epoch in range(1, 4):
        served.clock.advance(short)
        before = refreshes(served)
        assert alice.calls("-d", "a=b", "/pay")["method"] == "POST"
        assert alice.status("--offline")["epoch"] == epoch
        assert refreshes(served, before + 1) == before + 1


def test_two_calls_at_once_renew_once(served, tmp_path, short):
    alice = Person(served, tmp_path / "alice", "racing").signs_up().logs_in()
    for _ in range(3):
        served.clock.advance(short)
        before = refreshes(served)
        calls = [alice.begin(f"/call/{number}") for number in range(2)]
        for call in calls:
            out, err = call.communicate(timeout=60)
            assert call.returncode == 0, err
            assert json.loads(out)["headers"]["countersign-account"] == "name:racing"
        assert refreshes(served, before + 1) == before + 1
    assert alice.status()["signed_in"]


def test_a_revoked_session_is_refused_at_once(served, alice):
    session = alice.status()["session"]
    listed = json.loads(served.admin("session", "list", "demo", alice.name, "--json").out)["sessions"]
    assert [row["session"] for row in listed] == [session]
    assert json.loads(served.admin("session", "revoke", session, "--json").out)["revoked"]
    done = alice.run("request", "/hello")
    assert done.returncode == 1 and "revoked" in done.err
    assert not json.loads(served.admin("session", "revoke", session, "--json").out)["revoked"]
    assert json.loads(served.admin("session", "list", "demo", alice.name, "--json").out)["sessions"] == []
    records = served.admin("audit", "list", "--json").out
    assert session in records and "session.revoke" in records


def devices_of(served, alice):
    return json.loads(served.admin("account", "devices", "demo", alice.name, "--json").out)["devices"]


def test_a_revoked_session_forgets_its_device(served, alice):
    (device,) = devices_of(served, alice)
    assert len(device["device"]) == 64 and device["class"] and device["name"] and device["first_seen"] <= device["last_seen"]
    assert device["device"][:16] in served.admin("account", "devices", "demo", alice.name).out
    revoked = json.loads(served.admin("session", "revoke", alice.status()["session"], "--json").out)
    assert revoked["revoked"] and revoked["forgot_device"] and devices_of(served, alice) == []
    assert "device_kept" in served.admin("audit", "list", "--json").out
    assert "no devices" in served.admin("account", "devices", "demo", alice.name).out


def test_a_device_is_kept_or_forgotten_by_name(served, alice):
    (device,) = devices_of(served, alice)
    session = alice.status()["session"]
    kept = json.loads(served.admin("session", "revoke", session, "--keep-device", "--json").out)
    assert kept["revoked"] and not kept["forgot_device"] and devices_of(served, alice) == [device]

    def forget(text):
        return run("account", "forget-device", "demo", alice.name, text, "--json", "--data", served.data,
                   environment=served.environment)

    name = device["device"]
    assert forget(name[:7]).returncode == 2 and forget("g" * 16).returncode == 2
    assert forget(("0" if name[0] != "0" else "f") * 8).returncode == 1
    done = forget(name[:16].upper())
    assert done.returncode == 0 and json.loads(done.out)["forgotten"] == device and devices_of(served, alice) == []
    assert "account.forget-device" in served.admin("audit", "list", "--json").out


def test_the_device_that_sets_a_password_by_a_code_is_known(served, alice, tmp_path):
    (old,) = devices_of(served, alice)
    code = json.loads(served.admin("account", "reset", "demo", alice.name, "--json").out)["reset_code"]
    phone = Person(served, tmp_path / "phone", alice.name)
    done = phone.run("signup", "--account", alice.name, "--reset-code-stdin", "--password-stdin",
                     stdin=f"{code}\na new password\n")
    assert done.returncode == 0, done.err
    (known,) = devices_of(served, alice)
    assert known["device"] != old["device"]
    phone.logs_in(password="a new password")
    (still,) = devices_of(served, alice)
    assert still["device"] == known["device"] and still["first_seen"] == known["first_seen"], "the login presents the same key"


def test_a_locked_account_is_out_until_it_is_unlocked(served, alice):
    locked = json.loads(served.admin("account", "lock", "demo", alice.name, "--json").out)
    assert locked["state"] == "locked" and len(locked["ended_sessions"]) == 1
    done = alice.run("request", "/hello")
    assert done.returncode == 1 and "locked or removed" in done.err
    done = alice.run("login", "--account", alice.name, "--password-stdin", stdin=PASSWORD)
    assert done.returncode == 1 and "forbidden" in done.err
    # A caller without the password gets no such information.
    done = alice.run("login", "--account", alice.name, "--password-stdin", stdin="another")
    assert done.returncode == 1 and "the name or the password is wrong" in done.err
    served.admin("account", "unlock", "demo", alice.name)
    assert alice.logs_in().calls("/")["headers"]["countersign-account"] == f"name:{alice.name}"


def test_a_removed_account_keeps_its_name(served, alice):
    served.admin("account", "remove", "demo", alice.name)
    assert alice.run("request", "/hello").returncode == 1
    done = alice.run("login", "--account", alice.name, "--password-stdin", stdin=PASSWORD)
    assert "the name or the password is wrong" in done.err
    done = alice.run("signup", "--account", alice.name, "--password-stdin", stdin=PASSWORD)
    assert done.returncode == 1 and "name-taken" in done.err
    again = run("account", "unlock", "demo", alice.name, "--data", served.data)
    assert again.returncode == 1 and "for good" in again.err


def test_a_forgotten_password_is_set_by_a_code(served, alice):
    made = json.loads(served.admin("account", "reset", "demo", alice.name, "--valid", "10m", "--json").out)
    assert alice.calls("/")  # what stands goes on standing
    done = alice.run("signup", "--account", alice.name, "--reset-code-stdin", "--password-stdin",
                     stdin=f"{'0' * 20}\na new one\n")
    assert done.returncode == 1, "a code that was not given out"
    done = alice.run("signup", "--account", alice.name, "--reset-code-stdin", "--password-stdin",
                     stdin=f"{made['reset_code']}\na new one\n")
    assert done.returncode == 0, done.err
    assert alice.run("request", "/").returncode == 1, "its sessions have ended"
    done = alice.run("login", "--account", alice.name, "--password-stdin", stdin=PASSWORD)
    assert done.returncode == 1
    alice.logs_in(password="a new one").calls("/")
    done = alice.run("signup", "--account", alice.name, "--reset-code-stdin", "--password-stdin",
                     stdin=f"{made['reset_code']}\na third one\n")
    assert done.returncode == 1, "a code is good once"


def test_another_password_ends_the_other_sessions(served, alice, tmp_path):
    served.admin("app", "policy", "demo", "--set", "slots=unlimited")
    try:
        other = Person(served, tmp_path / "other", alice.name, release=alice.release).logs_in()
        assert len(json.loads(alice.run("sessions", "--json").out)["sessions"]) == 2
        done = alice.run("password", "--password-stdin", stdin="not it\na new one\n")
        assert done.returncode == 1 and "wrong" in done.err
        done = alice.run("password", "--password-stdin", stdin=f"{PASSWORD}\na new one\n")
        assert done.returncode == 0, done.err
        assert alice.calls("/")["headers"]["countersign-account"] == f"name:{alice.name}"
        done = other.run("request", "/")
        assert done.returncode == 1 and "password was changed" in done.err
        other.logs_in(password="a new one")
    finally:
        served.admin("app", "policy", "demo", "--set", "slots=single")


def test_an_account_sees_and_ends_its_other_sessions(served, alice, tmp_path):
    served.admin("app", "policy", "demo", "--set", "slots=unlimited")
    try:
        other = Person(served, tmp_path / "other", alice.name, release=alice.release).logs_in("--device-class", "tv")
        listed = json.loads(alice.run("sessions", "--json").out)["sessions"]
        mine, = [row for row in listed if row["current"]]
        theirs, = [row for row in listed if not row["current"]]
        assert mine["session"] == alice.status()["session"] and theirs["device"]["class"] == "tv"
        assert alice.run("sessions", "--end", theirs["session"]).returncode == 0
        assert "revoked" in other.run("request", "/").err
        assert alice.calls("/")
        assert alice.run("sessions", "--end", theirs["session"]).returncode in (0, 1)
    finally:
        served.admin("app", "policy", "demo", "--set", "slots=single")


def test_admins_add_accounts(served, tmp_path):
    served.admin("account", "add", "demo", "Added", "--password-stdin", "--user-id", "4711", stdin=PASSWORD + "\n")
    added = Person(served, tmp_path / "added", "added").logs_in()
    assert added.calls("/")["headers"]["countersign-account"] == "id:4711"
    again = run("account", "add", "demo", "added", "--data", served.data)
    assert again.returncode == 1 and "one of that name" in again.err
    served.admin("account", "add", "demo", "bare")
    listed = json.loads(served.admin("account", "list", "demo", "--json").out)["accounts"]
    states = {row["account"]: row["credential"] for row in listed}
    assert states["added"] == "opaque" and states["bare"] == "none"
    page = json.loads(served.admin("account", "list", "demo", "--limit", "1", "--json").out)
    rest = json.loads(served.admin("account", "list", "demo", "--after", page["next"], "--json").out)
    assert len(page["accounts"]) == 1 and len(page["accounts"] + rest["accounts"]) == len(listed)


def test_a_session_of_a_password_that_was_sent(served, tmp_path, short):
    alice = Person(served, tmp_path / "alice", "sending").signs_up()
    done = alice.run("login", "--account", "sending", "--password-stdin", "--password-login", stdin=PASSWORD)
    assert done.returncode == 1, "only where the policy has it"
    served.admin("app", "policy", "demo", "--set", "password-login=on")
    try:
        done = alice.run("login", "--account", "sending", "--password-stdin", "--password-login", stdin="another")
        assert done.returncode == 1 and "the name or the password is wrong" in done.err
        alice.logs_in("--password-login")
        assert alice.status()["kind"] == "bearer"
        for _ in range(2):
            served.clock.advance(short)
            echoed = alice.calls("/hello")["headers"]
            assert echoed["countersign-account"] == "name:sending" and "authorization" not in echoed
        assert alice.run("logout").returncode == 0
        assert alice.run("status").returncode == 1
    finally:
        served.admin("app", "policy", "demo", "--set", "password-login=off")


def test_admins_add_accounts_on_the_ladder(served):
    done = run("account", "add", "demo", "old", "--legacy", "md5-salt", "--password-stdin", "--data", served.data, stdin=PASSWORD)
    assert done.returncode == 1 and "legacy-salt" in done.err
    served.admin("app", "policy", "demo", "--set", "legacy-salt=pepper")
    made = json.loads(served.admin("account", "add", "demo", "old", "--legacy", "md5-salt", "--password-stdin", "--json",
                                   stdin=PASSWORD).out)
    assert made["credential"] == "md5-salt" and made["user_id"] is None
    done = run("account", "add", "demo", "older", "--legacy", "md6", "--password-stdin", "--data", served.data, stdin=PASSWORD)
    assert done.returncode == 2 and "hmac-md5-time" in done.err


def test_nobody_signs_up_where_admins_make_accounts(served, tmp_path):
    served.admin("app", "policy", "demo", "--set", "registration=admin")
    try:
        done = Person(served, tmp_path / "p", "uninvited").run(
            "signup", "--account", "uninvited", "--password-stdin", stdin=PASSWORD)
        assert done.returncode == 1 and "forbidden" in done.err
    finally:
        served.admin("app", "policy", "demo", "--set", "registration=open")


def test_the_vault_is_private_and_shows_nothing(served, alice):
    folder = alice.folder / "profile"
    names = {path.name for path in folder.iterdir()}
    assert {"vault", "vault.key", "secret", "profile.json"} <= names
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())
    kept = b"".join(path.read_bytes() for path in folder.iterdir())
    assert PASSWORD.encode() not in kept and alice.name.encode() not in kept
    (folder / "vault").chmod(0o644)
    done = alice.run("request", "/")
    assert done.returncode == 1 and "mode 0644" in done.err, "what cannot be told is not taken for signed out"
    (folder / "vault").chmod(0o600)
    assert alice.calls("/")["headers"]["countersign-account"] == f"name:{alice.name}"


def test_a_server_that_is_down_ends_nothing(tmp_path):
    with Gateway(tmp_path / "gateway") as gateway:
        gateway.add_app("demo", registration="open")
        alice = Person(gateway, tmp_path / "alice").signs_up().logs_in()
        assert gateway.stop() == 0
        for command in ("request", "sessions"):
            done = alice.run(command, *(["/hello"] if command == "request" else []))
            assert done.returncode == 3, (command, done.err)
        done = alice.run("status")
        assert done.returncode == 0 and "signed in as:  alice" in done.out and "cannot be reached" in done.err
        gateway.start()
        assert alice.calls("/hello")["headers"]["countersign-account"] == "name:alice"


def test_a_wrong_pin_gets_no_password(served, tmp_path):
    alice = Person(served, tmp_path / "alice", "pinned").signs_up()
    release = alice.release
    other = str(tmp_path / "other")
    done = run("profile", "add", other, "--url", served.url, "--key-id", release["key_id"], "--secret-stdin", "--pin",
               "sha256/" + "A" * 43 + "=", stdin=release["secret"])
    assert done.returncode == 0, done.err
    done = run("login", "--profile", other, "--account", "pinned", "--password-stdin", stdin=PASSWORD)
    assert done.returncode == 3 and "nothing was sent" in done.err
    # What was sent before a request that the log has is in the log.
    assert alice.run("request", "--as-release", "/afterwards").returncode == 0
    until(lambda: any(event["path"] == "/afterwards" for event in served.events()))
    starts = [event for event in served.events() if event["path"].endswith("/login/start")]
    assert starts and not [event for event in starts if event.get("release") == release["key_id"]]


def test_an_unknown_authority_gets_no_registration(served, tmp_path):
    alice = Person(served, tmp_path / "alice", "unknown")
    bare = str(tmp_path / "bare")
    assert run("profile", "add", bare, "--url", served.url, "--key-id", alice.release["key_id"], "--secret-stdin",
               stdin=alice.release["secret"]).returncode == 0
    done = run("signup", "--profile", bare, "--account", "unknown", "--password-stdin", stdin=PASSWORD)
    assert done.returncode == 1 and "an attacker on the network path" in done.err


@pytest.fixture
def dropping(tmp_path):
    """A server without TLS, and a proxy before it that can read, and keep, what passes."""
    with DroppingProxy() as proxy, Gateway(tmp_path / "gateway", "--tls", "off", "--authority", f"127.0.0.1:{proxy.port}",
                                           clock=Clock(tmp_path)) as gateway:
        proxy.upstream = gateway.port
        gateway.add_app("demo", registration="open")
        yield gateway, proxy


@pytest.mark.parametrize("arguments", [["/read"], ["-d", "a=b", "/pay"]], ids=["GET", "POST"])
def test_a_lost_answer_is_asked_for_once_more(dropping, tmp_path, arguments):
    gateway, proxy = dropping
    alice = Person(gateway, tmp_path / "alice", url=f"http://127.0.0.1:{proxy.port}").signs_up().logs_in()
    proxy.drop(1, arguments[-1])
    assert alice.calls(*arguments)["target"] == arguments[-1]
    copies = proxy.copies(arguments[-1])
    assert proxy.dropped == 1 and len(copies) == 2
    keys = [copy.get("idempotency-key") for copy in copies]
    assert keys[0] == keys[1] and (keys[0] is not None) == ("/pay" in arguments)
    proxy.drop(2, arguments[-1])
    done = alice.run("request", *arguments)
    assert proxy.dropped == 2 and done.returncode == 3 and "outcome is unknown" in done.err
    assert alice.status()["signed_in"]


def test_a_lost_refresh_is_recovered_however_often(dropping, tmp_path):
    gateway, proxy = dropping
    gateway.admin("app", "policy", "demo", "--set", "token-lifetime=1s")
    alice = Person(gateway, tmp_path / "alice", url=f"http://127.0.0.1:{proxy.port}").signs_up().logs_in()
    for lost in (1, 2, 4):
        gateway.clock.advance(1.1)
        proxy.drop(lost, "/token")
        for _ in range((lost + 1) // 2 - (lost == 1)):
            assert alice.run("request", "/read").returncode == 3
        assert alice.calls("/read")["headers"]["countersign-account"] == "name:alice"
        assert proxy.dropped == lost


def test_a_password_is_sent_to_a_named_certificate_only(served, tmp_path):
    alice = Person(served, tmp_path / "alice", "unnamed")
    bare = str(tmp_path / "bare")
    options = ["profile", "add", bare, "--url", served.url, "--key-id", alice.release["key_id"], "--secret-stdin",
               "--authority-key", alice.release["authority_key"]]
    assert run(*options, stdin=alice.release["secret"]).returncode == 0
    login = ["login", "--profile", bare, "--account", "unnamed", "--password-stdin", "--password-login"]
    done = run(*login, stdin=PASSWORD)
    assert done.returncode == 1 and "not pinned" in done.err and "--bearer-secrets-to-any-certificate" in done.err
    # With permission it continues, to a server that no authority vouches for.
    assert run(*options, "--bearer-secrets-to-any-certificate", stdin=alice.release["secret"]).returncode == 0
    done = run(*login, stdin=PASSWORD)
    assert done.returncode == 3 and "not trusted, nothing was sent" in done.err


def test_who_signs_out_offline_is_signed_out(dropping, tmp_path):
    gateway, proxy = dropping
    alice = Person(gateway, tmp_path / "alice", url=f"http://127.0.0.1:{proxy.port}").signs_up().logs_in()
    gateway.admin("app", "policy", "demo", "--set", "token-lifetime=1s")
    session = alice.status()["session"]
    proxy.upstream = 0
    done = alice.run("logout", "--json")
    assert done.returncode == 0 and json.loads(done.out) == {"profile": alice.profile, "signed_in": False, "server_told": False}
    assert alice.run("status").returncode == 1 and alice.run("sessions").returncode == 1
    assert "told with the next command" in alice.run("logout").out, "still to be told"
    listed = lambda: {each["session"]: each for each in json.loads(  # noqa: E731
        gateway.admin("session", "list", "demo", "alice", "--ended", "--json").out)["sessions"]}
    assert listed()[session]["ended"] is None
    # Whatever the profile keeps of it renews nothing: its token has run out by now, and ends the session all the same.
    gateway.clock.advance(2)
    proxy.upstream = gateway.port
    assert alice.run("request", "--as-release", "/read").returncode == 0
    assert listed()[session]["ended"] == "signed-out"
    assert "no account is signed in" in alice.run("logout").err
    alice.logs_in()
    assert alice.run("request", "/hello").returncode == 0

