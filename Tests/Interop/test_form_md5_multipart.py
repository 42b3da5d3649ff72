"""form-md5 over multipart bodies: fields are signed, files are listed, and nothing is read in two ways."""

import hashlib
import hmac
import json
import secrets
import subprocess
import time

import pytest
import requests

from gateway import Gateway, run
from module_backend import backend  # noqa: F401
from signing import ReleaseKey

APP_ID, PRIVATE_KEY = "Zk3vQp81LmTn0aWd", "hUe7cXs2Rb9yKfJ4"
BOUNDARY = "----boundary-of-the-test"
RELEASE = ("release", "add", "old", "--platform", "ios", "--version", "2.0", "--scheme", "form-md5", "--key-id",
           APP_ID, "--secret", PRIVATE_KEY)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, backend):
    with Gateway(tmp_path_factory.mktemp("multipart"), "--upstream", backend.url) as running:
        running.add_app("old", schemes="form-md5")
        running.admin(*RELEASE)
        running.add_app("new")
        running.key = running.add_release("new")
        yield running


def signed(**business: str) -> dict[str, str]:
    form = business | {"app_id": APP_ID, "plat": "ios", "ver": "2.0", "rand": secrets.token_hex(8),
                       "timestamp": time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime())}
    pairs = sorted((form | {"private_key": PRIVATE_KEY}).items())
    text = "&".join(f"{name}={value}" for name, value in pairs)
    return form | {"sign": hashlib.md5(text.encode()).hexdigest()}


def part(name: str, value: bytes | str, more: str = "", lines: str = "") -> bytes:
    value = value.encode() if isinstance(value, str) else value
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n{lines}\r\n'
    return head.encode() + value + b"\r\n"


def parts(form: dict[str, str]) -> bytes:
    return b"".join(part(name, value) for name, value in form.items())


PHOTO = b"\x89PNG\r\n\0--not a boundary\r\n"
FILE = part("photo", PHOTO, '; filename="a.png"', "Content-Type: image/png\r\n")
END = f"--{BOUNDARY}--\r\n".encode()


def send(gateway: Gateway, body: bytes, *, target: str = "/upload", fields: str = "",
         kind: str = f"multipart/form-data; boundary={BOUNDARY}"):
    head = (f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\nContent-Type: {kind}\r\n{fields}"
            f"Content-Length: {len(body)}\r\n\r\n")
    return gateway.send(head.encode() + body)


def code(answer) -> int | None:
    """Nil where the backend answered."""
    if answer.body.startswith(b"POST "):
        return None
    return json.loads(answer.body)["err"]["code"]


def test_a_library_uploads(gateway, backend):
    """What `requests` sends, field by field."""
    files = {"photo": ("a.png", PHOTO, "image/png"), "doc[]": ("x y.pdf", b"", "application/pdf")}
    form = signed(note="a & b\r\nc", empty="")
    answer = requests.post(gateway.url + "/upload", data=form, files=files, timeout=60,
                           verify=str(gateway.data / "tls/certificate.pem"))
    assert answer.status_code == 200 and answer.text.startswith("POST /upload"), answer.text
    seen = backend.seen[-1]
    assert seen.get("countersign-unsigned-parts") == "photo, doc[]"
    assert seen.get("countersign-scheme") == "form-md5"
    assert PHOTO in seen.body


def test_curl_uploads(gateway, tmp_path):
    photo = tmp_path / "a.png"
    photo.write_bytes(PHOTO)
    fields = [word for name, value in signed(note="x").items() for word in ("-F", f"{name}={value}")]
    command = ["curl", "-sS", "--cacert", gateway.data / "tls/certificate.pem", *fields, "-F", f"photo=@{photo}",
               gateway.url + "/upload"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith("POST /upload"), done.stdout + done.stderr


def test_without_files_nothing_is_unsigned(gateway, backend):
    assert code(send(gateway, parts(signed(a="1")) + END)) is None
    assert backend.seen[-1].get("countersign-unsigned-parts") is None


def test_the_list_is_the_gateways_own(gateway, backend):
    answer = send(gateway, parts(signed(a="1")) + FILE + END,
                  fields="Countersign-Unsigned-Parts: none\r\nCountersign_Unsigned_Parts: none\r\n")
    assert code(answer) is None
    assert backend.seen[-1].get("countersign-unsigned-parts") == "photo"
    names = [name for name, _ in backend.seen[-1].fields if "unsigned" in name]
    assert names == ["countersign-unsigned-parts"]
    answer = send(gateway, parts(signed(a="1")) + END, fields="Countersign-Unsigned-Parts: none\r\n")
    assert code(answer) is None
    assert backend.seen[-1].get("countersign-unsigned-parts") is None


def test_what_is_signed_cannot_be_changed_and_a_file_can(gateway):
    form = signed(amount="1")
    assert code(send(gateway, parts(form | {"amount": "9"}) + FILE + END)) == -3
    assert code(send(gateway, parts(form) + part("more", "1") + END)) == -3
    assert code(send(gateway, parts({k: v for k, v in form.items() if k != "amount"}) + END)) == -3
    assert code(send(gateway, parts(form) + FILE.replace(b"PNG", b"JPG") + END)) is None
    assert code(send(gateway, parts(form) + FILE + END)) == -5, "the same signature again"


def test_an_unsigned_query_beside_it(gateway):
    assert code(send(gateway, parts(signed()) + END, target="/upload?app_id=x&sign=y")) == -1


def test_what_two_readers_may_understand_differently_is_malformed(gateway, backend):
    before = len(backend.seen)
    # What the parts may be is a table of MultipartTests; these are the readings of the scheme.
    for body in (parts(signed()) + END + b"x", parts(signed(a="1")) + part("A[x]", "2", '; filename="x"') + END,
                 parts(signed()) + part("token", "2", '; filename="x"') + END,
                 parts(signed()) + part("private_key", PRIVATE_KEY) + END, parts(signed()) + part("f", b"a\0b") + END,
                 parts(signed()) + part("f", "1", '; filename="x"', f"Content-Type: {'x' * 1_100}\r\n") + END):
        assert code(send(gateway, body)) == -1
    for kind in (f"multipart/form-data; boundary={BOUNDARY}; charset=utf-8",
                 f"multipart/form-data; boundary={BOUNDARY}\r\nContent-Type: multipart/form-data; boundary=x",
                 f"multipart/form-data; boundary={BOUNDARY}\r\nContent-Encoding: identity"):
        answer = send(gateway, parts(signed()) + END, kind=kind)
        assert answer.status == 400 or code(answer) == -1
    assert len(backend.seen) == before


def test_an_upload_beyond_what_is_held(gateway):
    body = parts(signed()) + part("photo", bytes(1 << 20), '; filename="a"') + END
    answer = send(gateway, body)
    assert code(answer) == -10


def test_other_schemes_upload_as_before(gateway, backend):
    """A multipart body under message-signatures is the digest's business, however it is made; with form-md5's
    names in it, it would be signed twice."""
    host = f"127.0.0.1:{gateway.port}"
    kind = ("content-type", "multipart/form-data; boundary=b; charset=x")
    key = ReleaseKey(gateway.key.key_id, gateway.key.secret, host)
    for body in b"preamble\r\n--b\r\n\r\n\r\n--b--", parts({"a": "1"}) + FILE + END:
        assert gateway.send(key.request("POST", "/up", body=body, fields=[kind])).status == 200
        assert backend.seen[-1].body == body
    both = gateway.send(key.request("POST", "/up", body=parts(signed()) + END,
                                    fields=[("content-type", f"multipart/form-data; boundary={BOUNDARY}")]))
    assert both.status != 200 or json.loads(both.body)["err"]["code"] == -1


def test_the_commands_sign_and_judge_it(gateway, tmp_path):
    key = ("--scheme", "form-md5", "--key-id", APP_ID, "--secret", PRIVATE_KEY)
    body = part("note", "Jo & Ann") + FILE + END
    head = ["POST /upload HTTP/1.1", "Host: api.example", f"Content-Type: multipart/form-data; boundary={BOUNDARY}",
            f"Content-Length: {len(body)}", "", ""]
    plain = "\r\n".join(head).encode() + body
    made = run("sign", *key, "--platform", "ios", "--version", "2.0", stdin=plain)
    assert made.returncode == 0, made.err
    assert run("verify", *key, stdin=made.stdout).out == "accepted\n"
    assert FILE in made.stdout
    broken = run("explain", *key, "--policy", "form-md5-key=appended", "--json", stdin=made.stdout)
    assert json.loads(broken.out)["cause"]["code"] == "key-place"
    changed = run("verify", *key, stdin=made.stdout.replace(b"Jo & Ann", b"Jo & Eva"))
    assert changed.out == "bad-signature\n"

    profile = tmp_path / "profile"
    done = run("profile", "add", profile, "--url", gateway.url, "--ca", gateway.data / "tls/certificate.pem",
               "--key-id", APP_ID, "--secret-stdin", "--scheme", "form-md5", "--platform", "ios", "--version", "2.0",
               stdin=PRIVATE_KEY)
    assert done.returncode == 0, done.err
    (tmp_path / "body").write_bytes(body)
    done = run("request", "--profile", profile, "-d", f"@{tmp_path / 'body'}", "-H",
               f"Content-Type: multipart/form-data; boundary={BOUNDARY}", "/upload")
    assert done.returncode == 0 and done.out.startswith("POST /upload"), done.out + done.err


def test_where_no_policy_allows_it_no_body_is_searched(tmp_path):
    with Gateway(tmp_path) as gateway:
        gateway.add_app("new")
        gateway.key = gateway.add_release("new")
        answer = send(gateway, parts(signed()) + END)
        assert answer.status == 401 and json.loads(answer.body)["code"] == "unsigned"
        key = ReleaseKey(gateway.key.key_id, gateway.key.secret, f"127.0.0.1:{gateway.port}")
        body = parts(signed()) + END
        kind = ("content-type", f"multipart/form-data; boundary={BOUNDARY}")
        assert gateway.send(key.request("POST", "/up", body=body, fields=[kind])).status == 200


def test_the_user_that_a_field_states(tmp_path):
    """With tokens of ours, `userId` and `token` count among the fields as among a form's parameters."""
    with Gateway(tmp_path) as gateway:
        gateway.add_app("old", schemes="form-md5", legacy_session="authority")
        gateway.admin(*RELEASE)
        assert json.loads(send(gateway, parts(signed(userId="7")) + END).body)["err"]["code"] == -100
        assert json.loads(send(gateway, parts(signed(UserID="7")) + END).body)["err"]["code"] == -1
        assert "err" not in json.loads(send(gateway, parts(signed(note="7")) + END).body)


def test_a_mistake_of_another_scheme_beside_a_multipart_body():
    """auth-v1 signs in the query: there its signature is looked for, whatever the body's parts are called."""
    query = f"auth_key=k1&auth_timestamp={int(time.time())}&auth_version=1.0"
    sign = hmac.digest(b"s" * 16, f"POST\n/up\n{query}".encode(), "sha256").hex().upper()
    body = parts({"auth_signature": "x", "auth_key": "x"}) + FILE + END
    head = [f"POST /up?{query}&auth_signature={sign} HTTP/1.1", "Host: api.example",
            f"Content-Type: multipart/form-data; boundary={BOUNDARY}", f"Content-Length: {len(body)}", "", ""]
    done = run("explain", "--scheme", "auth-v1", "--key-id", "k1", "--secret", "s" * 16, "--json",
               stdin="\r\n".join(head).encode() + body)
    assert done.returncode == 1 and json.loads(done.out)["cause"]["code"] == "hex-case", done.out
