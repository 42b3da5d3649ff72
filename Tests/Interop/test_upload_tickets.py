"""Upload tickets: a session gets the right to send one upload later and without a signature. A ticket lets exactly that
upload in, once, before it runs out and while its session lives; the backend never sees it, and no log has it."""

import base64
import hashlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import threading
import time

import pytest

import bearer
from backend import Backend, ok
from clock import Clock
from gateway import Gateway, run
from person import Person
from ports import reserve_port
from signing import digest
from waiting import until
from wire import Answer, Closed

BODY = b"a picture of a cat"
PATH = "/files/7?x=1"
LARGE = secrets.token_bytes(3 << 20)


class Shop:
    """A gateway, its backend and the sessions of an app that allows upload tickets."""

    def __init__(self, folder, *options: object, tickets: int = 16, backend: Backend | None = None):
        self.backend = backend or Backend()
        self.gateway = Gateway(folder, "--upstream", self.backend.url, *options, clock=Clock(folder)).start()
        bearer.add_app(self.gateway, 3)
        self.gateway.admin("app", "policy", "demo", "--set", f"upload-tickets={tickets}")
        self.sessions: dict[str, dict] = {}
        self.token = self.signs_in("user-0")

    def __enter__(self) -> "Shop":
        return self

    def __exit__(self, *_: object) -> None:
        self.gateway.__exit__()
        self.backend.close()

    def signs_in(self, name: str) -> str:
        answer = self.gateway.send(bearer.login(self.gateway, name))
        assert answer.status == 200, answer
        made = json.loads(answer.body)
        self.sessions[made["token"]] = made
        return made["token"]

    def asks(self, method: str = "PUT", target: str = PATH, body: bytes = BODY, *, token: str | None = None,
             **members) -> Answer:
        """The answer to a request for a ticket; `members` take the place of those of the JSON."""
        asked = {"method": method, "target": target, "content_digest": digest(body), "length": len(body),
                 "expires_in": 600, **members}
        asked = {name: value for name, value in asked.items() if value is not None}
        return self.gateway.send(self.gateway.key.request(
            "POST", f"{bearer.PREFIX}/uploads", json.dumps(asked).encode(),
            fields=[("authorization", f"Bearer {token or self.token}"), ("content-type", "application/json")]))

    def ticket(self, *arguments, **members) -> str:
        answer = self.asks(*arguments, **members)
        assert answer.status == 201, answer
        made = json.loads(answer.body)
        assert made["ticket"].startswith("u_") and len(made["ticket"]) == 45
        return made["ticket"]

    def upload(self, ticket: str, method: str = "PUT", target: str = PATH, body: bytes = BODY, *,
               host: str | None = None, fields: tuple[str, ...] = (), length: int | None = None) -> bytes:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host or self.gateway.key.authority}",
                 f"Countersign-Ticket: {ticket}", f"Content-Length: {len(body) if length is None else length}", *fields]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body

    def sends(self, *arguments, **options) -> Answer:
        return self.gateway.send(self.upload(*arguments, **options))

    def code(self, *arguments, **options) -> str:
        """`accepted`, or the code of the refusal, which the backend must not have had a whole request of."""
        before = len(self.backend.seen)
        answer = self.sends(*arguments, **options)
        if answer.status == 200:
            return "accepted"
        assert len(self.backend.seen) == before, "a refused upload reached the backend"
        return json.loads(answer.body)["code"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    with Shop(tmp_path_factory.mktemp("tickets"), tickets=500) as made:
        yield made


def test_an_upload_is_let_in_once(shop):
    ticket = shop.ticket()
    before = len(shop.backend.seen)
    assert shop.code(ticket) == "accepted"
    seen = shop.backend.seen[before]
    assert (seen.method, seen.target, seen.body) == ("PUT", PATH, BODY)
    assert seen.get("countersign-scheme") == "upload-ticket"
    assert seen.get("countersign-account") == "name:user-0"
    assert seen.get("countersign-session") and seen.get("countersign-release") == shop.gateway.key.key_id
    assert shop.code(ticket) == "replayed"


def test_the_ticket_reaches_neither_the_backend_nor_the_log(shop):
    ticket = shop.ticket()
    assert shop.code(ticket) == "accepted"
    assert shop.code(ticket, target="/elsewhere") == "bad-ticket"
    secret = ticket[2:]
    assert not any(secret.encode() in record for record in shop.backend.raw)
    assert secret not in shop.gateway.log_path.read_text()
    assert all(seen.get("countersign-ticket") is None for seen in shop.backend.seen)
    lines = [event for event in shop.gateway.events() if event.get("scheme") == "upload-ticket"]
    assert lines and lines[-1]["app"] == "demo" and lines[-1]["session"]


def test_whoever_reads_the_database_has_no_ticket(shop):
    ticket = shop.ticket()
    secret = base64.urlsafe_b64decode(ticket[2:] + "=")
    files = [path for path in shop.gateway.data.rglob("*") if path.is_file()]
    kept = {path: path.read_bytes() for path in files}
    assert any(secret[:16] in content for content in kept.values()), "the ticket's id is kept"
    for path, content in kept.items():
        assert secret[16:] not in content and ticket.encode() not in content, path


def test_another_request_is_refused_and_the_ticket_stays_good(shop):
    ticket = shop.ticket()
    for change in ({"method": "POST"}, {"target": "/files/%37?x=1"}, {"body": BODY[:-1]}, {"host": f"localhost:{shop.gateway.port}"}):
        assert shop.code(ticket, **change) == "bad-ticket", change
    assert shop.code(ticket) == "accepted"


def test_another_body_of_the_same_length_is_refused(shop):
    ticket = shop.ticket()
    assert shop.code(ticket, body=BODY[::-1]) == "body-mismatch"
    assert shop.code(ticket) == "accepted"


def test_a_body_without_a_length_is_refused(shop):
    ticket = shop.ticket()
    chunked = shop.upload(ticket, fields=()).replace(b"Content-Length: 18", b"Transfer-Encoding: chunked").replace(
        BODY, b"12\r\n" + BODY + b"\r\n0\r\n\r\n")
    assert json.loads(shop.gateway.send(chunked).body)["code"] == "bad-ticket"


def test_a_large_body_streams_and_its_last_piece_waits_for_the_digest(shop):
    ticket = shop.ticket("PUT", "/large", LARGE)
    changed = LARGE[:-1] + bytes([LARGE[-1] ^ 1])
    assert shop.code(ticket, target="/large", body=changed) == "body-mismatch"
    assert shop.code(ticket, target="/large", body=LARGE) == "accepted"
    assert hashlib.sha256(shop.backend.seen[-1].body).digest() == hashlib.sha256(LARGE).digest()
    assert shop.code(ticket, target="/large", body=LARGE) == "replayed"


def test_a_large_body_that_breaks_off_may_be_sent_again(shop):
    ticket, before = shop.ticket("PUT", "/large", LARGE), shop.backend.bytes()
    with shop.gateway.connect() as connection:
        connection.send(shop.upload(ticket, target="/large", body=LARGE[:1 << 20], length=len(LARGE)))
        until(lambda: shop.backend.bytes() > before, "the body's first part")
    codes = []
    until(lambda: codes.append(shop.code(ticket, target="/large", body=LARGE)) or codes[-1] != "replayed", "the ticket's release")
    assert codes[-1] == "accepted"


def test_the_content_type_is_bound_and_no_other_field_goes_on(shop):
    ticket = shop.ticket(content_type="image/jpeg")
    assert shop.code(ticket) == "bad-ticket"
    assert shop.code(ticket, fields=("Content-Type: text/html",)) == "bad-ticket"
    assert shop.code(ticket, fields=("Content-Type: image/jpeg", "Cookie: a=b", "X-Own: 1")) == "accepted"
    seen = shop.backend.seen[-1]
    assert seen.get("content-type") == "image/jpeg" and not seen.get("cookie") and not seen.get("x-own")
    ticket = shop.ticket()
    assert shop.code(ticket, fields=("Content-Type: image/jpeg",)) == "accepted"
    assert shop.backend.seen[-1].get("content-type") is None


def test_one_of_twenty_that_race_reaches_the_backend(shop):
    ticket, codes, before = shop.ticket(), [], len(shop.backend.seen)
    ready = threading.Barrier(20)

    def send():
        ready.wait()
        answer = shop.sends(ticket)
        codes.append("accepted" if answer.status == 200 else json.loads(answer.body)["code"])

    threads = [threading.Thread(target=send) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(codes) == ["accepted"] + ["replayed"] * 19
    assert len(shop.backend.seen) == before + 1


def test_what_is_no_ticket_is_refused(shop):
    ticket = shop.ticket()
    last = "A" if ticket[-1] != "A" else "E"
    wrong = ["u_", "u_" + "A" * 43, "x_" + ticket[2:], ticket[:-1], ticket[:20] + ("A" if ticket[20] != "A" else "B")
             + ticket[21:], ticket[:-1] + last, ticket + "A", " ".join(["u_a", "u_b"])]
    for text in wrong:
        assert shop.code(text) == "bad-ticket", text
    assert shop.code(ticket, fields=(f"Countersign-Ticket: {ticket}",)) == "malformed"
    assert shop.code(ticket) == "accepted"


def test_a_signature_beside_a_ticket_is_refused(shop):
    ticket = shop.ticket()
    head = shop.gateway.key.head("PUT", PATH, body=BODY)
    both = head[:-2] + f"Countersign-Ticket: {ticket}\r\n\r\n".encode() + BODY
    assert json.loads(shop.gateway.send(both).body)["code"] == "malformed"


def test_a_ticket_opens_no_route_of_the_authority(shop):
    ticket = shop.ticket()
    answer = shop.sends(ticket, "POST", f"{bearer.PREFIX}/logout", b"{}")
    assert json.loads(answer.body)["code"] == "forbidden"
    assert json.loads(shop.asks(target=f"{bearer.PREFIX}/logout").body)["code"] == "forbidden"


def test_what_cannot_be_asked_for_is_malformed(shop):
    for members in ({"target": "/a\r\nx: y"}, {"target": "/" + "a" * 5000}, {"length": 1 << 60}):
        answer = shop.asks(**members)
        assert (answer.status, json.loads(answer.body)["code"]) == (400, "malformed"), answer


def test_a_route_for_devices_takes_no_ticket(shop):
    ticket = shop.ticket("PUT", "/pay/1")
    shop.gateway.admin("route", "set", "demo", "/pay", "--require", "device")
    try:
        assert shop.code(ticket, target="/pay/1") == "device-unsigned"
        assert json.loads(shop.asks(target="/pay/1").body)["code"] == "forbidden"
    finally:
        shop.gateway.admin("route", "remove", "demo", "/pay")


def test_a_ticket_runs_out(shop):
    ticket = shop.ticket(expires_in=2)
    shop.gateway.clock.advance(3.1)
    assert shop.code(ticket) == "bad-ticket"


def test_an_expiry_above_the_policys_is_refused(shop):
    shop.gateway.admin("app", "policy", "demo", "--set", "upload-ticket-max=1h")
    try:
        assert json.loads(shop.asks(expires_in=3601).body)["code"] == "malformed"
        shop.ticket(expires_in=3600)
    finally:
        shop.gateway.admin("app", "policy", "demo", "--set", "upload-ticket-max=")


def test_a_ticket_ends_with_its_session(shop):
    token = shop.signs_in("user-1")
    ticket = shop.ticket(token=token)
    shop.gateway.admin("session", "revoke", shop.sessions[token]["session"])
    assert shop.code(ticket) == "session-ended"
    token = shop.signs_in("user-1")
    ticket = shop.ticket(token=token)
    assert shop.gateway.send(bearer.bearing(shop.gateway, token, "POST", "/logout")).status == 200
    assert shop.code(ticket) == "session-ended"


def test_a_ticket_ends_with_a_lock_of_its_account(shop):
    ticket = shop.ticket(token=shop.signs_in("user-2"))
    shop.gateway.admin("account", "lock", "demo", "user-2")
    try:
        assert shop.code(ticket) == "session-ended"
    finally:
        shop.gateway.admin("account", "unlock", "demo", "user-2")
    assert shop.code(ticket) == "session-ended"


def test_observing_lets_no_refused_ticket_through(shop):
    shop.gateway.admin("app", "policy", "demo", "--set", "enforcement=observe")
    try:
        assert shop.code(shop.ticket(), body=BODY[::-1]) == "body-mismatch"
        assert shop.code("u_" + "A" * 43) == "bad-ticket"
    finally:
        shop.gateway.admin("app", "policy", "demo", "--set", "enforcement=")


def test_a_session_that_is_not_signed_gets_none(shop):
    unsigned = (f"POST {bearer.PREFIX}/uploads HTTP/1.1\r\nHost: {shop.gateway.key.authority}\r\n"
                f"Authorization: Bearer {shop.token}\r\nContent-Length: 2\r\n\r\n{{}}").encode()
    assert json.loads(shop.gateway.send(unsigned).body)["code"] == "unsigned"
    alone = shop.gateway.key.request("POST", f"{bearer.PREFIX}/uploads", b"{}",
                                     fields=[("content-type", "application/json")])
    assert json.loads(shop.gateway.send(alone).body)["code"] == "session-required"


def test_no_more_than_the_policy_allows_and_none_where_it_says_nothing(tmp_path):
    with Shop(tmp_path, tickets=2) as shop:
        tickets = [shop.ticket(), shop.ticket()]
        full = shop.asks()
        assert (full.status, json.loads(full.body)["code"]) == (429, "too-many-attempts")
        assert full.get("retry-after")
        assert shop.code(tickets[0]) == "accepted"
        tickets.append(shop.ticket())
        # An account has four times as many, however many sessions it opens.
        for _ in range(3):
            token = shop.signs_in("user-0")
            tickets += [shop.ticket(token=token), shop.ticket(token=token)]
        assert json.loads(shop.asks(token=shop.signs_in("user-0")).body)["code"] == "too-many-attempts"
        shop.gateway.admin("app", "policy", "demo", "--set", "upload-tickets=")
        assert json.loads(shop.asks().body)["code"] == "forbidden"
        assert shop.code(tickets[1]) == "forbidden"


def test_a_ticket_survives_a_restart_used_and_unused(tmp_path):
    with Shop(tmp_path) as shop:
        used, unused = shop.ticket(), shop.ticket()
        assert shop.code(used) == "accepted"
        assert shop.gateway.stop(9) == -9
        shop.gateway.start()
        assert shop.code(used) == "replayed"
        assert shop.code(unused) == "accepted"


def test_a_ticket_ends_with_its_release(tmp_path):
    with Shop(tmp_path) as shop:
        ticket = shop.ticket()
        shop.gateway.admin("release", "retire", shop.gateway.key.key_id, "--at", "now", "--update-url",
                           "https://example.com/update")
        assert shop.code(ticket) == "update-required"


def test_a_backend_that_is_down_or_answers_badly(tmp_path):
    """A ticket whose upload the backend cannot have had stays good; one whose upload it may have had does not."""
    port = reserve_port()
    with Shop(tmp_path, backend=Backend(port=port)) as shop:
        ticket, other = shop.ticket(), shop.ticket()
        shop.backend.close()
        for _ in range(3):
            assert shop.sends(ticket).status == 502

        def silent(seen, sock: socket.socket) -> None:
            raise Closed

        shop.backend = Backend(silent, port=port)
        assert shop.sends(other).status == 502
        assert len(shop.backend.seen) == 1
        shop.backend.answer = ok
        assert shop.code(other) == "replayed"
        assert shop.code(ticket) == "accepted"


def test_a_ticket_wears_out(tmp_path):
    port = reserve_port()
    with Shop(tmp_path, backend=Backend(port=port)) as shop:
        ticket = shop.ticket()
        shop.backend.close()
        statuses = [shop.sends(ticket).status for _ in range(17)]
        assert statuses == [502] * 16 + [401]
        shop.backend = Backend(port=port)


def test_made_up_tickets_count_as_failed_verifications(tmp_path):
    """That they do not reach the store is shown by UploadTicketTests. Beyond its budget an address loses the connection."""
    with Shop(tmp_path) as shop:
        good, refused = shop.ticket(), 0
        with shop.gateway.connect() as connection:
            with pytest.raises(Closed):
                for _ in range(20_000):
                    connection.send(shop.upload("u_" + secrets.token_urlsafe(32)[:42] + "A", body=b""))
                    assert json.loads(connection.answer().body)["code"] == "bad-ticket"
                    refused += 1
        assert refused >= 2000, "some mistakes are nobody's attack"
        assert shop.code(good) == "accepted"


def test_the_meter_counts_uploads_and_the_losers_of_a_race(tmp_path):
    with Shop(tmp_path) as shop:
        ticket, large = shop.ticket(), shop.ticket("PUT", "/large", LARGE)
        threads = [threading.Thread(target=shop.sends, args=(ticket,)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert shop.code(large, target="/large", body=LARGE) == "accepted"
        assert shop.code(shop.ticket(), body=BODY[::-1]) == "body-mismatch"
        # The login and three requests for tickets were signed by the release.
        expected = {"accepted": 6, "accepted_by_ticket": 2, "refused_by_code": {"replayed": 4, "body-mismatch": 1}}

        def seen() -> dict:
            line = json.loads(shop.gateway.admin("meter", "demo", "--json").out)["releases"][0]
            return {name: line[name] for name in expected}

        until(lambda: shop.gateway.clock.advance(1) or seen() == expected, seen)


def test_no_ticket_for_a_path_where_old_clients_sign_in(tmp_path):
    with Shop(tmp_path) as shop:
        shop.gateway.admin("app", "policy", "demo", "--set", "legacy-login=on", "--set", "legacy-paths=login:/api/signin")
        for target in ("/api/signin", "/api.php/signin", "/api/%C5%BFignin"):
            answer = shop.asks(target=target)
            assert (answer.status, json.loads(answer.body)["code"]) == (403, "forbidden"), target
        assert shop.ticket()


def test_decide_sees_no_body_and_so_takes_no_ticket(tmp_path):
    with Gateway(tmp_path, "--tls", "off", "--decide", "nginx", "--trusted-proxies", "127.0.0.1") as gateway:
        gateway.add_app("demo", upload_tickets="4")
        secret = (gateway.data / "decide-secret").read_text().strip()
        asked = (f"GET {bearer.PREFIX}/decide HTTP/1.1\r\nHost: x\r\nCountersign-Decide: {secret}\r\n"
                 f"X-Original-Method: PUT\r\nX-Original-URI: {PATH}\r\nX-Original-Host: 127.0.0.1:{gateway.port}\r\n"
                 f"Countersign-Ticket: u_{'A' * 43}\r\n\r\n").encode()
        answer = gateway.send(asked)
        assert (answer.status, answer.get("countersign-refusal")) == (403, "decide-needs-body")


def test_the_assertion_names_the_ticket_and_the_body(tmp_path):
    with Shop(tmp_path) as shop:
        shop.gateway.admin("app", "policy", "demo", "--set", "assertion=on")
        for path, body in ((PATH, BODY), ("/large", LARGE)):
            assert shop.code(shop.ticket("PUT", path, body), target=path, body=body) == "accepted"
            part = shop.backend.seen[-1].get("countersign-assertion").split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
            named = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
            assert (claims["scheme"], claims["htu"], claims["body_sha256"]) == ("upload-ticket", path, named)


def test_explain_says_that_only_the_server_can_judge_a_ticket():
    request = f"PUT {PATH} HTTP/1.1\nHost: a\nCountersign-Ticket: u_{'A' * 43}\n\n"
    done = run("explain", "--scheme", "message-signatures", "--key-id", "r_1", "--secret", "text:x", stdin=request)
    assert done.returncode == 1 and "bears an upload ticket, which only the server that issued it can judge" in done.out
    assert "AAAA" not in done.out


def runs(command: str, folder) -> subprocess.CompletedProcess:
    """Runs a printed command as a script, with a curl that notes its arguments, one a line, in `folder`/arguments."""
    folder.mkdir(exist_ok=True)
    (folder / "command").write_text(command)
    real = shutil.which("curl")
    assert real
    noting = folder / "curl"
    noting.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {folder}/arguments\nexec {real} \"$@\"\n")
    noting.chmod(0o700)
    return subprocess.run(["sh", folder / "command"], capture_output=True, timeout=60, check=False,
                          env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})


@pytest.mark.parametrize("is_right", [True, False], ids=["the pinned key", "another key"])
def test_curl_sends_the_ticket_to_the_pinned_key_alone(tmp_path, is_right):
    """Where the profile has a pin and no file of authorities, as for a certificate that signs itself."""
    with Backend() as backend, Gateway(tmp_path / "server", "--upstream", backend.url) as gateway:
        gateway.add_app("demo", registration="open", upload_tickets="4")
        alice = Person(gateway, tmp_path / "alice").signs_up()
        right = next(line.split()[1] for line in gateway.started if line.startswith("spki_pin "))
        done = run("profile", "add", alice.profile, "--url", gateway.url, "--key-id", alice.release["key_id"],
                   "--secret-stdin", "--authority-key", alice.release["authority_key"], "--pin", right,
                   stdin=alice.release["secret"])
        assert done.returncode == 0, done.err
        alice.logs_in()
        picture = tmp_path / "picture.jpg"
        picture.write_bytes(b"small")
        command = alice.run("upload-ticket", "--file", picture, "/pictures/1").out
        pin = right.removeprefix("sha256/")
        assert f"sha256//{pin}" in command
        if not is_right:
            command = command.replace(pin, base64.b64encode(bytes(32)).decode())
        sent = runs(command, tmp_path / "shell")
        assert (sent.returncode == 0, len(backend.seen)) == ((True, 1) if is_right else (False, 0)), sent


def test_the_command_line_gets_one_and_curl_uploads_by_it(tmp_path):
    """Over the SDK, with a session of a device whose token has run out by then."""
    with Backend() as backend, Gateway(tmp_path / "server", "--upstream", backend.url, clock=Clock(tmp_path)) as gateway:
        gateway.add_app("demo", registration="open", upload_tickets="4", token_lifetime="2s")
        alice = Person(gateway, tmp_path / "alice").signs_up().logs_in()
        picture = tmp_path / "a picture's.jpg"
        picture.write_bytes(LARGE)
        done = alice.run("upload-ticket", "--file", picture, "--content-type", "image/jpeg", "--expires", "30m",
                         "/pictures/1?kind=cat&of=alice%27s")
        assert done.returncode == 0, done.err
        gateway.clock.advance(2.5)
        ticket = next(line for line in done.out.splitlines() if line.startswith("Countersign-Ticket: u_")).split()[1]
        sent = [runs(done.out, tmp_path / "shell") for _ in range(2)]
        arguments = (tmp_path / "shell/arguments").read_text()
        assert str(picture) in arguments and ticket not in arguments and len(ticket) == 45
        assert sent[0].returncode == 0, sent[0]
        assert sent[1].returncode != 0 and json.loads(sent[1].stdout)["code"] == "replayed"
        seen = backend.seen[0]
        assert (len(backend.seen), seen.method, seen.target) == (1, "PUT", "/pictures/1?kind=cat&of=alice%27s")
        assert seen.body == LARGE and seen.get("content-type") == "image/jpeg"
        assert seen.get("countersign-account").endswith("alice")

        shown = json.loads(alice.run("upload-ticket", "--file", picture, "-X", "POST", "--json", "/pictures/").out)
        assert (shown["method"], shown["length"]) == ("POST", len(LARGE)) and shown["url"] == f"{gateway.url}/pictures/"
        assert shown["expires"] - time.time() == pytest.approx(3600, abs=30)
        assert list(shown["headers"]) == ["Countersign-Ticket"]
        for wrong in (["--expires", "25h"], ["-X", "DELETE"], ["--file", tmp_path / "none"]):
            refused = alice.run("upload-ticket", "--file", picture, *wrong, "/pictures/1")
            assert refused.returncode in (1, 2) and "u_" not in refused.out, wrong
