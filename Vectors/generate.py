#!/usr/bin/env python3
"""Makes the vectors that are not copied from a standard.

message-signatures: signed by PyPI's http-message-signatures, which shares no code with us.
form-md5, auth-v1, auth-v2, auth-v4: the figures are given (request, key, signature); hashlib and hmac recompute each of
them here, and stop if one differs.

Run it from anywhere: `python3 Vectors/generate.py`. Its output is the same each time.
"""
import base64
import datetime
import hashlib
import hmac
import json
import pathlib
import random
import urllib.parse

from http_message_signatures import HTTPMessageSigner, algorithms
from http_message_signatures.resolvers import MappingKeyResolver

HERE = pathlib.Path(__file__).parent
MINIMUM = ("@method", "@authority", "@path", "@query", "countersign-release")


class Message:
    """What http-message-signatures asks of a request."""

    def __init__(self, method, url, headers):
        self.method, self.url, self.headers = method, url, headers


class Signer(HTTPMessageSigner):
    """Keeps the signature base, so that a vector has every intermediate."""

    base = None

    def _build_signature_base(self, *args, **kwargs):
        result = super()._build_signature_base(*args, **kwargs)
        self.base = result[0]
        return result


def content_digest(body, names=("sha-256",)):
    hashes = {"sha-256": hashlib.sha256, "sha-512": hashlib.sha512}
    return ", ".join(f"{n}=:{base64.b64encode(hashes[n](body).digest()).decode()}:" for n in names)


def signed(name, method, url, fields=(), body=b"", digests=("sha-256",), extra=(), created=1_700_000_000, **kwargs):
    key_id = "r_vector"
    secret = hashlib.sha256(b"countersign vector " + name.encode()).digest()
    headers = dict(fields)
    headers["Countersign-Release"] = key_id
    covered = list(MINIMUM)
    if body:
        headers["Content-Digest"] = content_digest(body, digests)
        covered.append("content-digest")
        kwargs |= {"body": body, "use_existing_digest": True}
    covered += [field.lower() for field, _ in fields]
    message = Message(method, url, headers)
    keys = MappingKeyResolver(public_keys={key_id: secret}, private_keys={key_id: secret})
    signer = Signer(signature_algorithm=algorithms.HMAC_SHA256, key_resolver=keys)
    signer.sign(
        message,
        key_id=key_id,
        created=datetime.datetime.fromtimestamp(created, datetime.timezone.utc),
        nonce=hashlib.sha256(name.encode()).hexdigest()[:32],
        tag="countersign",
        label="app",
        covered_component_ids=covered + list(extra),
        **kwargs,
    )
    parts = urllib.parse.urlsplit(url)
    return {
        "name": name,
        "method": method,
        "transport": parts.scheme,
        "authority": parts.netloc,
        "target": (parts.path or "/") + ("?" + parts.query if "?" in url else ""),
        "fields": [[k, v] for k, v in message.headers.items()],
        "body": body.decode(),
        "key_id": key_id,
        "secret": secret.hex(),
        "created": created,
        "string_to_sign": signer.base,
    }


def message_signatures():
    json_type = ("Content-Type", "application/json")
    yield signed("get without a query", "GET", "https://api.example.com/notes")
    yield signed("get with an empty query", "GET", "https://api.example.com/notes?")
    yield signed("root", "GET", "https://api.example.com/")
    yield signed("query kept raw", "GET", "https://api.example.com/find?q=a+b&q=a%20b&z=%C3%BC&empty=&flag")
    yield signed("path kept raw", "GET", "https://api.example.com/a%2Fb/%7Euser/;v=1/x%20y")
    yield signed("double slashes", "GET", "https://api.example.com//a//b/")
    yield signed("authority in upper case", "GET", "https://API.Example.COM/notes")
    yield signed("default port of https", "GET", "https://api.example.com:443/notes")
    yield signed("default port of http", "GET", "http://api.example.com:80/notes")
    yield signed("another port", "GET", "https://localhost:8443/notes")
    yield signed("IPv6 authority", "GET", "https://[::1]:8443/notes")
    yield signed("post with a body", "POST", "https://api.example.com/notes", [json_type], b'{"text":"hello"}')
    yield signed("both digests", "PUT", "https://api.example.com/notes/1", [json_type], b"{}", ("sha-256", "sha-512"))
    yield signed("sha-512 alone", "PUT", "https://api.example.com/notes/1", [json_type], b"[]", ("sha-512",))
    yield signed(
        "idempotency key", "POST", "https://api.example.com/orders",
        [json_type, ("Idempotency-Key", "5d0f6f0e-9d8b-4f6e-8d6c-1f1b7c6c8a11")], b'{"item":7}')
    yield signed("empty field", "GET", "https://api.example.com/notes", [("X-Empty", "")])
    yield signed("commas and quotes in a field", "GET", "https://api.example.com/", [("X-List", 'a, "b, c" ;d')])
    yield signed("tab inside a field", "GET", "https://api.example.com/", [("X-Tab", "a\tb")])
    yield signed("delete", "DELETE", "https://api.example.com/notes/1")
    yield signed("without alg", "GET", "https://api.example.com/notes", include_alg=False)
    yield signed(
        "with expires", "GET", "https://api.example.com/notes",
        expires=datetime.datetime.fromtimestamp(1_700_000_030, datetime.timezone.utc))
    yield signed(
        "every other derived component", "GET", "https://api.example.com/notes?x=1",
        extra=("@target-uri", "@scheme", "@request-target"))
    yield signed("utf-8 body", "POST", "https://api.example.com/notes", [json_type], '{"名":"ü"}'.encode())
    rng = random.Random(9421)
    for index in range(20):
        alphabet = "abcXYZ019-._~!$&'()*+,;=:@/?%25%2F"
        path = "/" + "".join(rng.choice("abcXYZ019-._~;:@/") for _ in range(rng.randrange(30)))
        query = urllib.parse.quote("".join(rng.choice(alphabet) for _ in range(rng.randrange(30))), safe="!$&'()*+,;=:@/?")
        fields = [(f"X-{rng.randrange(10 ** 6)}", "".join(rng.choice("ab ,;\"=\\") for _ in range(9)).strip())
                  for _ in range(rng.randrange(6))]
        body = bytes(rng.randrange(32, 127) for _ in range(rng.choice([0, 1, 64, 513])))
        yield signed(
            f"random {index}", rng.choice(["GET", "POST", "PUT", "PATCH", "DELETE"]),
            f"https://api.example.com{path}?{query}", fields, body, created=rng.randrange(1, 1 << 31))


def form_md5():
    path = HERE / "form-md5" / "cases.json"
    vectors = json.loads(path.read_text())
    for case in vectors["cases"]:
        parameters = dict(case["parameters"])
        assert len(parameters) == len(case["parameters"]), case["name"]
        everything = parameters | {"private_key": case["private_key"]}
        text = "&".join(f"{k}={everything[k]}" for k in sorted(everything, key=str.encode))
        assert hashlib.md5(text.encode()).hexdigest() == case["sign"], case["name"]
        case["form"] = urllib.parse.urlencode(parameters | {"sign": case["sign"]}, quote_via=urllib.parse.quote_plus)
        case["string_to_sign"] = text.replace(f"private_key={case['private_key']}", "private_key=<secret>")
    return vectors


def authenticated(case, text):
    """The figures of one case with every intermediate; they must agree with what was given."""
    mac = hmac.new(case["secret"].encode(), text.encode(), hashlib.sha256).hexdigest()
    assert mac == case["signature"], case["name"]
    case["string_to_sign"] = text
    case["string_to_sign_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return case


def base(name):
    return name.removesuffix("[]")


def joined(parameters):
    return "&".join(f"{name}={value}" for name, value in parameters)


def form(case):
    """All parameters as they are sent; a body's own MD5 among them must be its MD5."""
    parameters = [*map(tuple, case["parameters"]), ("auth_signature", case["signature"])]
    digest = dict(case["parameters"]).get("body_md5")
    assert digest in (None, hashlib.md5(case["body"].encode()).hexdigest()), case["name"]
    return urllib.parse.urlencode(parameters, quote_via=urllib.parse.quote_plus)


def auth_v1():
    vectors = json.loads((HERE / "auth-v1" / "cases.json").read_text())
    for case in vectors["cases"]:
        lower = [(name.lower(), value) for name, value in case["parameters"]]
        params = joined(sorted(lower, key=lambda pair: base(pair[0]).encode()))
        authenticated(case, f"{case['method']}\n{case['path']}\n{params}")
        case["form"] = form(case)
    return vectors


def auth_v2():
    vectors = json.loads((HERE / "auth-v2" / "cases.json").read_text())
    for case in vectors["cases"]:
        signed_ones = [pair for pair in case["parameters"] if not pair[0].startswith("auth_")]
        params = urllib.parse.unquote_plus(joined(sorted(signed_ones, key=lambda pair: base(pair[0]).encode())))
        authenticated(case, f"{case['method']}\n{urllib.parse.unquote_plus(case['path'])}\n{params}")
        case["form"] = form(case)
    return vectors


def auth_v4_value(raw):
    """A value as it is signed; `raw` is its text in the body."""
    value = json.loads(raw)
    if value in (None, [], {}):
        return ""
    match value:
        case bool(): return "1" if value else "0"
        case str(): return urllib.parse.quote(value, safe="-._~")
        case list() | dict(): return urllib.parse.quote(raw, safe="-._~")
        case _: return raw


def members(body):
    """The outermost members of an object and the text of each value as it stands."""
    decoder, at, found = json.JSONDecoder(), body.index("{") + 1, []
    while body[at:].lstrip(" \t\r\n,")[:1] == '"':
        at = body.index('"', at)
        name, at = decoder.raw_decode(body, at)
        at = body.index(":", at) + 1
        at += len(body[at:]) - len(body[at:].lstrip(" \t\r\n"))
        _, end = decoder.raw_decode(body, at)
        found.append((name, body[at:end]))
        at = end
    return found


def auth_v4():
    vectors = json.loads((HERE / "auth-v4" / "cases.json").read_text())
    for case in vectors["cases"]:
        pairs = sorted((name.lower(), raw) for name, raw in (members(case["body"]) if case["body"] else []))
        params = joined((urllib.parse.quote(name, safe="-._~"), auth_v4_value(raw)) for name, raw in pairs)
        authenticated(case, f"{case['method']}\n{case['url']}\n{params}")
    return vectors


def write(path, value):
    (HERE / path).write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    write("message-signatures/cases.json", {"scheme": "message-signatures", "cases": list(message_signatures())})
    write("form-md5/cases.json", form_md5())
    write("auth-v1/cases.json", auth_v1())
    write("auth-v2/cases.json", auth_v2())
    write("auth-v4/cases.json", auth_v4())
