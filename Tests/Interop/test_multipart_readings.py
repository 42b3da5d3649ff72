"""A multipart body that the gateway admits is read by PHP as it was signed: whatever is changed in one, or put
between its parts, either is refused or leaves the fields as they are, and all files are listed. The changes are the
same in each run."""

import json
import random
import re
import subprocess
import urllib.request

import needs
import pytest

import processes
from gateway import ROOT, Gateway
from ports import listens, reserve_port
from test_form_md5_multipart import BOUNDARY, END, FILE, RELEASE, part, parts, signed
from waiting import until

pytestmark = needs.programs("php")
# Seconds after which no more changes are tried, so that a slow machine ends too; the fewest and the most.
LEAST, MOST = 150, 900
PIECES = [b"\r\n", b"\n", b"\r", b"--", f"--{BOUNDARY}".encode(), f"\r\n--{BOUNDARY}\r\n".encode(),
          f"\n--{BOUNDARY}\n".encode(), f"\r\n--{BOUNDARY}--\r\n".encode(), b'"', b";", b"\\", b"\0", b" ", b"\t",
          b"=", b"name=", b'; name="amount"', b"; name=amount", b'; filename="x"', b"; filename*=UTF-8''x", b"%22",
          b"[", b".", b'Content-Disposition: form-data; name="amount"\r\n',
          b"Content-Type: text/plain; charset=utf-7\r\n",
          b"Content-Transfer-Encoding: base64\r\n", b"Content-Length: 1\r\n", part("amount", "9"),
          part("amount", "9", '; filename="x"'), part("more", "9"), part("more", "9", '; filename="x"')]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """PHP's own server as the backend."""
    port = reserve_port()
    command = ["php", "-S", f"127.0.0.1:{port}", ROOT / "Tests/Interop/multipart_reader.php"]
    process = processes.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: listens(port, process), "PHP does not listen")
        with Gateway(tmp_path_factory.mktemp("readings"), "--tls", "off", "--upstream", url) as running:
            running.add_app("old", schemes="form-md5")
            running.admin(*RELEASE)
            running.php = url
            yield running
    finally:
        process.terminate()
        process.wait(60)


def read(reader: Gateway, body: bytes) -> dict | None:
    """What PHP saw; nil where the gateway refused it."""
    head = (f"POST /upload HTTP/1.1\r\nHost: 127.0.0.1:{reader.port}\r\nContent-Type: multipart/form-data; "
            f"boundary={BOUNDARY}\r\nContent-Length: {len(body)}\r\n\r\n")
    answer = reader.send(head.encode() + body)
    # Where form-md5's names are gone, it is unsigned, and not an `err`.
    assert answer.status in (200, 400, 401), answer
    said = json.loads(answer.body)
    return said if answer.status == 200 and "fields" in said else None


def bare(name: str) -> str:
    return re.split(r"[\[._]", name, maxsplit=1)[0]


def changed(body: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(body) + 1)
    match chance.randrange(4):
        case 0:
            return body[:start] + chance.choice(PIECES) + body[start:]
        case 1:
            return body[:start] + chance.choice(PIECES) + body[start + chance.randrange(1, 8):]
        case 2:
            return body[:start] + body[start + chance.randrange(1, 40):]
        case _:
            # Near a delimiter, where it matters most.
            mark = f"--{BOUNDARY}".encode()
            places = [place for place in range(len(body)) if body.startswith(mark, place)]
            start = max(0, chance.choice(places) + chance.randrange(-3, len(BOUNDARY) + 6))
            return body[:start] + chance.choice(PIECES) + body[start + chance.randrange(0, 3):]


def test_php_reads_what_was_signed(reader, is_long):
    chance, admitted, tried = random.Random(1), 0, 0
    while tried < (MOST if is_long else LEAST):
        form = signed(amount="1", note="a\r\nb")
        body = parts(form) + FILE + END
        meant = {name: value.encode().hex() for name, value in form.items()}
        if tried % 20:
            body = changed(body, chance)
        seen = read(reader, body)
        tried += 1
        if seen is None:
            assert tried % 20 != 1, "a body that nothing has changed is refused"
            continue
        admitted += 1
        assert seen["fields"] == meant, body
        # PHP cuts names at `[` and writes `_` for what it has no place for.
        assert {bare(name) for name in seen["files"]} == {bare(name) for name in seen["unsigned"]}, body
    assert tried >= LEAST and admitted >= tried // 20


def test_php_takes_more_than_the_gateway(reader):
    """The control: a body that PHP reads otherwise than its signer meant reaches no backend."""
    form = signed(amount="1")
    inner = f'x\n--{BOUNDARY}\nContent-Disposition: form-data; name="amount"\n\n9'
    loose = parts(form) + part("c", inner) + END
    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    with urllib.request.urlopen(urllib.request.Request(reader.php, loose, kind), timeout=60) as answer:
        assert json.loads(answer.read())["fields"]["amount"] == b"9".hex()
    assert read(reader, loose) is None
