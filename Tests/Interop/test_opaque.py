"""OPAQUE with Rust's opaque-ke (PyPI `opaque-snake`): each library as client and as server of the other.

opaque-snake takes neither names nor context, has one setting of Argon2id (19 MiB, two passes, one lane, no salt), and as a
server knows no account that is not there. Names, context and its own fake records are in Tests/OpaqueTests.
"""

import secrets
import subprocess

import opaque_snake
import pytest

import processes
from products import peer

PEER = peer("opaque")


class Refused(Exception):
    """Our side said no; the text says why."""


class Peer:
    """Our library, driven by lines."""

    def __init__(self) -> None:
        self.process = processes.start(PEER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, command: str, *arguments: bytes) -> list[bytes]:
        return [bytes.fromhex(word) for word in self.words(command, *(item.hex() for item in arguments))]

    def words(self, *line: str) -> list[str]:
        print(*line, file=self.process.stdin, flush=True)
        verdict, *words = self.process.stdout.readline().rstrip("\n").split(" ")
        if verdict == "refused":
            raise Refused(" ".join(words))
        assert verdict == "ok", (line[0], verdict, words)
        return [word for word in words if word]

    def close(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(60) == 0


@pytest.fixture
def peer():
    running = Peer()
    yield running
    running.close()


@pytest.fixture
def theirs():
    return opaque_snake.OpaqueServer()


def register_with(server: opaque_snake.OpaqueServer, peer: Peer, name: str, password: str):
    """Our client registers with their server. Returns their record and our export key."""
    request, = peer("client-register", password.encode())
    response = server.create_registration_response(opaque_snake.RegistrationRequest.from_bytes(request), name)
    record, export_key, server_key = peer("client-register-finish", response.to_bytes())
    assert response.to_bytes().endswith(server_key)
    return server.finish_registration(opaque_snake.RegistrationUpload.from_bytes(record)), export_key


def start_with(server: opaque_snake.OpaqueServer, peer: Peer, name: str, password: str, record):
    """Our client's first message, their answer. Returns the answer and their state."""
    ke1, = peer("client-login", password.encode())
    ke2, state = server.create_credential_response(opaque_snake.CredentialRequest.from_bytes(ke1), name, record)
    return ke2.to_bytes(), state


@pytest.mark.parametrize("password", ["correct horse", "", "пароль ü", "x" * 1000])
def test_our_client_with_their_server(peer, theirs, password):
    record, export_key = register_with(theirs, peer, "alice", password)
    for _ in range(2):
        ke2, state = start_with(theirs, peer, "alice", password, record)
        ke3, session_key, again, _ = peer("client-login-finish", ke2)
        keys = theirs.finish_login(opaque_snake.CredentialFinalization.from_bytes(ke3), state)
        assert (len(session_key), keys.session_key) == (64, session_key)
        assert again == export_key


def test_our_client_refuses_their_server(peer, theirs):
    record, _ = register_with(theirs, peer, "alice", "correct horse")
    ke2, _ = start_with(theirs, peer, "alice", "correct house", record)
    with pytest.raises(Refused, match="wrongPassword"):
        peer("client-login-finish", ke2)
    # The record of another account with the same password.
    other, _ = register_with(theirs, peer, "bob", "correct horse")
    ke2, _ = start_with(theirs, peer, "alice", "correct horse", other)
    with pytest.raises(Refused, match="wrongPassword"):
        peer("client-login-finish", ke2)
    ke2, _ = start_with(theirs, peer, "alice", "correct horse", record)
    with pytest.raises(Refused, match="serverNotAuthenticated"):
        peer("client-login-finish", ke2[:-1] + bytes([ke2[-1] ^ 1]))
    # A state is used once: after a refusal there is none.
    with pytest.raises(AssertionError, match="nothingBegun"):
        peer("client-login-finish", ke2)


def register_at(peer: Peer, client: opaque_snake.OpaqueClient, name: bytes, password: str) -> tuple[bytes, bytes]:
    """Their client registers with our server. Returns our record and their export key."""
    request, state = client.start_registration(password)
    response, = peer("server-register", name, request.to_bytes())
    result = client.finish_registration(opaque_snake.RegistrationResponse.from_bytes(response), state, password)
    assert [result.server_s_pk] == peer("server-key")
    return result.upload.to_bytes(), result.export_key


def start_at(peer: Peer, client: opaque_snake.OpaqueClient, name: bytes, password: str, record: bytes):
    """Their client's first message, our answer. Returns their state and the answer."""
    ke1, state = client.start_login(password)
    ke2, = peer("server-login", name, record, ke1.to_bytes())
    return state, opaque_snake.CredentialResponse.from_bytes(ke2)


@pytest.mark.parametrize("password", ["correct horse", "", "пароль ü", "x" * 1000])
def test_their_client_with_our_server(peer, password):
    client = opaque_snake.OpaqueClient()
    record, export_key = register_at(peer, client, b"alice", password)
    for _ in range(2):
        state, ke2 = start_at(peer, client, b"alice", password, record)
        result = client.finish_login(ke2, state, password)
        assert peer("server-finish", result.finalization.to_bytes()) == [result.session_keys.session_key]
        assert result.session_keys.export_key == export_key


def test_their_client_is_refused_at_our_server(peer):
    client = opaque_snake.OpaqueClient()
    record, _ = register_at(peer, client, b"alice", "correct horse")
    for name, password, stored in [
        (b"alice", "correct house", record), (b"bob", "correct horse", record),
        # No such account.
        (b"nobody", "correct horse", b""), (b"alice", "correct horse", b""),
    ]:
        state, ke2 = start_at(peer, client, name, password, stored)
        assert len(ke2.to_bytes()) == 320
        with pytest.raises(opaque_snake.AuthenticationError):
            client.finish_login(ke2, state, password)
        # It did not learn the session key; a MAC that it makes up is no way in.
        with pytest.raises(Refused, match="clientNotAuthenticated"):
            peer("server-finish", secrets.token_bytes(64))


def test_their_server_moves_to_ours(peer, theirs):
    """Seed, key and records of a deployment of theirs: the accounts go on with their passwords."""
    record, export_key = register_with(theirs, peer, "alice", "correct horse")
    # Seed, private key, and a key for fake records that ours does not need.
    peer("keys", theirs.export_setup()[:96])
    client = opaque_snake.OpaqueClient()
    state, ke2 = start_at(peer, client, b"alice", "correct horse", record.to_bytes())
    result = client.finish_login(ke2, state, "correct horse")
    assert peer("server-finish", result.finalization.to_bytes()) == [result.session_keys.session_key]
    assert result.session_keys.export_key == export_key


def test_what_a_login_costs_the_server(peer, note):
    known, unknown = map(int, peer.words("bench"))
    note(f"OPAQUE login: {known / 1000:.0f} µs of the server's CPU (aim 500), {unknown / 1000:.0f} µs without an account")
    # Four times the aim, for the slowest machine that runs this: a hashed password would show.
    assert 20_000 < known < 2_000_000
    # The work is the same. This is no proof against statistics over the network; it would see a step that is left out.
    assert abs(known - unknown) < 0.08 * known
