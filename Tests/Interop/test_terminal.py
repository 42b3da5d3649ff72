"""The server's text is displayed and not interpreted: neither by a terminal nor by a program that reads the
output later."""

import json
import os
import pty
import subprocess

import pytest

import processes
from backend import Backend
from gateway import BINARY, run

ESCAPES = "\x1b]0;title\x07 \x9b2J \u202egnp.exe \x7f"
WRITTEN = "\\u001b]0;title\\u0007 \\u009b2J \\u202egnp.exe \\u007f"
KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"


def answer(seen, sock):
    """A refusal to the authority's own routes, and to all else a body: both full of escapes."""
    if seen.target.startswith("/countersign/"):
        head, kind = "HTTP/1.1 403 Forbidden", "application/problem+json"
        body = json.dumps({"code": "forbidden", "title": ESCAPES, "detail": "said"}, ensure_ascii=False).encode()
    else:
        head, kind, body = f"HTTP/1.1 200 OK\r\nX-Title: \x1b[2J", "text/plain", ESCAPES.encode()
    sock.sendall(f"{head}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


@pytest.fixture
def profile(tmp_path):
    with Backend(answer) as server:
        folder = str(tmp_path / "profile")
        done = run("profile", "add", folder, "--url", server.url, "--key-id", "r_1", "--secret-stdin", "--authority-key",
                   KEY, stdin=KEY)
        assert done.returncode == 0, done.err
        yield folder


def at_terminal(*arguments: str) -> bytes:
    ours, theirs = pty.openpty()
    process = processes.start([BINARY, *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # The other end is closed.
        pass
    os.close(ours)
    process.communicate(timeout=60)
    return shown


def test_a_body_is_shown_and_not_obeyed(profile):
    shown = at_terminal("request", "--profile", profile, "-i", "/").decode()
    assert WRITTEN in shown and "X-Title: \\u001b[2J" in shown
    assert "\x1b" not in shown and "\x9b" not in shown and "\u202e" not in shown
    # Another program gets the bytes.
    assert run("request", "--profile", profile, "/").stdout == ESCAPES.encode()


def test_json_is_the_same_text_without_them(profile):
    done = run("request", "--profile", profile, "--json", "/")
    assert not {"\x1b", "\x9b", "\u202e", "\x7f"} & set(done.out)
    assert json.loads(done.out)["body"] == ESCAPES


def test_a_refusal_is_shown_and_not_obeyed(profile):
    done = run("signup", "--profile", profile, "--account", "alice", "--password-stdin", stdin="correct horse")
    assert done.returncode == 1 and WRITTEN in done.err
    assert not {"\x1b", "\x9b", "\u202e", "\x7f"} & set(done.err)
