#!/usr/bin/env python3
"""Makes the vectors that are not copied from a standard.

message-signatures: signed by PyPI's http-message-signatures, which shares no code with us.
sigv4: signed by PyPI's botocore, likewise; what curl 7.88.1 signed was captured once, and hashlib computes its figures
again here, and stops if a signature differs.
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

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
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


def hmac_sha256(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def sigv4_figures(canonical, string_to_sign, secret):
    """Everything between a canonical request and its signature."""
    key = f"AWS4{secret}".encode()
    for part in string_to_sign.split("\n")[2].split("/"):
        key = hmac_sha256(key, part)
    return {
        "canonical_request": canonical,
        "canonical_request_sha256": hashlib.sha256(canonical.encode()).hexdigest(),
        "string_to_sign": string_to_sign,
        "signing_key": key.hex(),
        "signature": hmac_sha256(key, string_to_sign).hex(),
    }


class Recorder:
    """Keeps the intermediates of whichever of botocore's signers it is mixed into."""

    def canonical_request(self, request):
        self.canonical = super().canonical_request(request)
        return self.canonical

    def string_to_sign(self, request, canonical_request):
        self.text = super().string_to_sign(request, canonical_request)
        return self.text


def botocore_signed(name, method, url, fields=(), body=b"", *, service="execute-api", region="eu-central-1",
                    signer="SigV4Auth", at=1_769_903_999, expires=None, payload_signing=True, spelling="standard"):
    secret = "secret of " + name
    kind = type("Signer", (Recorder, getattr(botocore.auth, signer)), {})
    arguments = [Credentials("AKIDVECTOR", secret), service, region] + ([] if expires is None else [expires])
    auth = kind(*arguments)
    request = AWSRequest(method=method, url=url, data=body)
    for field, value in fields:
        request.headers.add_header(field, value)
    request.context["payload_signing_enabled"] = payload_signing
    botocore.auth.get_current_datetime = lambda: datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
    auth.add_auth(request)
    figures = sigv4_figures(auth.canonical, auth.text, secret)
    parts = urllib.parse.urlsplit(request.url)
    assert figures["signature"] in request.url + request.headers.get("Authorization", ""), name
    return {
        "name": name,
        "method": method,
        "authority": parts.netloc,
        "target": (parts.path or "/") + ("?" + parts.query if parts.query else ""),
        "fields": [[field, value] for field, value in request.headers.items()],
        "body": body.decode(),
        "key_id": "AKIDVECTOR",
        "secret": secret,
        "created": at,
        "spelling": spelling,
    } | figures


def sigv4():
    api = "https://api.example.com"
    json_type = ("Content-Type", "application/json")

    def header(name, target="/", *fields, method="GET", body=b"", **kwargs):
        return botocore_signed(name, method, api + target, fields, body, **kwargs)

    def presigned(name, target="/", *fields, method="GET", body=b"", expires=300, signer="SigV4QueryAuth", **kwargs):
        return botocore_signed(name, method, api + target, fields, body, expires=expires, signer=signer, **kwargs)

    def s3(name, target="/", *fields, method="GET", body=b"", **kwargs):
        return botocore_signed(name, method, api + target, fields, body, service="s3", signer="S3SigV4Auth", **kwargs)

    yield header("root")
    yield header("path", "/notes/1")
    yield header("path that ends in a slash", "/notes/1/")
    yield header("dot segment", "/notes/./1")
    yield header("two dots", "/notes/a/../1")
    yield header("two dots beyond the root", "/../../notes")
    yield header("dot at the end", "/notes/.")
    yield header("two dots at the end", "/notes/a/..")
    yield header("nothing left of a path", "/a/..")
    yield header("double slashes", "//notes///1//")
    yield header("three dots are a name", "/.../..a/b..")
    yield header("escaped space in the path", "/a%20b")
    yield header("escaped slash and percent in the path", "/a%2Fb/%25")
    yield header("UTF-8 in the path", "/caf%C3%A9/%E5%90%8D")
    yield header("escapes in lower case in the path", "/caf%c3%a9")
    yield header("needless escape in the path", "/%7Euser/%61")
    yield header("sub-delimiters in the path", "/a!b$c&d'e(f)g*h+i,j;k=l:m@n")
    yield header("escaped dot segment stays", "/a/%2E%2E/b")
    yield header("query", "/notes?a=1&b=2")
    yield header("query out of order", "/notes?z=1&B=2&a=3&_=4")
    yield header("empty value", "/notes?a=&b=1")
    yield header("bare name", "/notes?flag&a=1")
    yield header("repeated parameter", "/notes?a=2&a=10&a=1&a")
    yield header("one name begins another", "/notes?a-b=1&a=2&a%20b=3&ab=4&a.=5")
    yield header("escaped space and plus", "/notes?q=a%20b&p=a%2Bb")
    yield header("plus as it is", "/notes?q=a+b")
    yield header("UTF-8 in the query", "/notes?%E5%90%8D=%C3%BC&a=%F0%9F%98%80")
    yield header("equals sign in a value", "/notes?token=abc%3D%3D")
    yield header("colon and slash unescaped in a value", "/notes?t=12:30&u=a/b", spelling="sorted")
    yield header("equals sign unescaped in a value", "/notes?z=1&token=abc==", spelling="sorted")
    yield header("escapes in lower case in the query", "/notes?z=%c3%bc&a=%2f", spelling="sorted")
    yield header("needless escape in the query", "/notes?b=%7E&a=%61", spelling="sorted")
    yield header("spaces around and inside a field", "/notes", ("X-Note", "  a   b\t\tc  "))
    yield header("folded field", "/notes", ("X-Note", "a      b"))
    yield header("several lines of one field", "/notes", ("X-List", "b"), ("X-List", "a"), ("X-Other", "c"), ("X-List", " a  a "))
    yield header("empty field", "/notes", ("X-Empty", ""))
    yield header("commas, colons and quotes in a field", "/notes", ("X-List", 'a:b, "c  d" ;e'))
    yield header("names that sort around hyphens", "/notes", ("X-A", "1"), ("X-A-B", "2"), ("X-AA", "3"), ("X_A", "4"))
    yield header("Date in the place of X-Amz-Date", "/notes", ("Date", "to be replaced"))
    yield header("security token", "/notes", ("X-Amz-Security-Token", "a+b/c=="))
    yield header("post", "/notes", json_type, method="POST", body=b'{"text":"hello"}')
    yield header("UTF-8 body", "/notes", json_type, method="PUT", body='{"名":"ü"}'.encode())
    yield header("digest of the body in a field", "/notes", json_type,
                 ("X-Amz-Content-SHA256", hashlib.sha256(b"{}").hexdigest()), method="POST", body=b"{}")
    yield header("unsigned payload", "/notes", json_type, method="POST", body=b"anything", payload_signing=False)
    yield header("delete", "/notes/1", method="DELETE")
    yield header("another port", "/notes", ("Host", "api.example.com:8443"))
    yield header("host in upper case", "/notes", ("Host", "API.Example.COM"))
    yield header("first second of a day", "/notes", at=1_769_904_000)
    yield header("29 February", "/notes", at=1_709_164_800)
    yield header("another region and service", "/notes", region="ap-southeast-2", service="my_service.v2")
    yield s3("s3: root")
    yield s3("s3: dot segments and double slashes", "/bucket//a/../b/./c//")
    yield s3("s3: escapes in the path", "/bucket/a%20b%2Fc/%7E")
    yield s3("s3: query out of order", "/bucket?prefix=a%2Fb&list-type=2&delimiter")
    yield s3("s3: put", "/bucket/key", ("Content-Type", "text/plain"), method="PUT", body=b"object")
    yield presigned("presigned")
    yield presigned("presigned: a second", "/notes", expires=1)
    yield presigned("presigned: a week", "/notes", expires=604_800)
    yield presigned("presigned: query", "/notes?z=1&a=b%20c&empty=")
    yield presigned("presigned: names that sort around ours", "/notes?X-Amz=1&X-Amz-E=2&X-Amz-Z=3&x-amz-date=4")
    yield presigned("presigned: a field more", "/notes", ("X-Tenant", "a  b"))
    yield presigned("presigned: path", "/a%20b//c/../d")
    yield presigned("presigned: post without a body", "/notes", method="POST")
    yield presigned("presigned: s3", "/bucket/a%20b//c", service="s3", signer="S3SigV4QueryAuth")
    yield presigned("presigned: s3 put", "/bucket/key", method="PUT", service="s3", signer="S3SigV4QueryAuth")
    rng = random.Random(4)
    for index in range(30):
        path = "/" + "".join(rng.choice("abZ09-._~/%;@") for _ in range(rng.randrange(24)))
        path = path.replace("%", rng.choice(["%20", "%25", "%C3%BC", "%2F"]))
        names = ["".join(rng.choice("abAB01-._~") for _ in range(rng.randrange(1, 4))) for _ in range(rng.randrange(6))]
        query = "&".join(name + rng.choice(["", "=", "=%20", "=1", "=%C3%A9", "=+"]) for name in names)
        fields = [(f"X-{rng.choice('ABC')}-{rng.randrange(9)}", "".join(rng.choice("ab ,;\t") for _ in range(9)).strip())
                  for _ in range(rng.randrange(5))]
        body = bytes(rng.randrange(32, 127) for _ in range(rng.choice([0, 1, 64, 513])))
        yield botocore_signed(
            f"random {index}", rng.choice(["GET", "POST", "PUT", "PATCH"]), api + path + "?" + query, fields, body,
            at=rng.randrange(1, 1 << 32))


def curl():
    """What curl 7.88.1 sent, captured; path and query are signed as they were written."""
    path = HERE / "sigv4" / "curl-7.88.1.json"
    vectors = json.loads(path.read_text())
    for case in vectors["cases"]:
        fields = {name.lower(): value for name, value in case["fields"]} | {"host": case["authority"]}
        scope, signed, signature = (part.partition("=")[2] for part in fields["authorization"].split(", "))
        target, _, query = case["target"].partition("?")
        lines = [case["method"], target, query]
        lines += [f"{name}:{' '.join(fields[name].split())}" for name in signed.split(";")] + ["", signed]
        lines.append(fields.get("x-amz-content-sha256") or hashlib.sha256(case["body"].encode()).hexdigest())
        canonical = "\n".join(lines)
        text = "\n".join(["AWS4-HMAC-SHA256", fields["x-amz-date"], scope.partition("/")[2],
                          hashlib.sha256(canonical.encode()).hexdigest()])
        case |= sigv4_figures(canonical, text, case["secret"])
        assert case["signature"] == signature, case["name"]
        created = datetime.datetime.strptime(fields["x-amz-date"] + "+0000", "%Y%m%dT%H%M%SZ%z")
        case["created"] = int(created.timestamp())
        case["spelling"] = "as-written"
    return vectors


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
    write("sigv4/cases.json", {"scheme": "sigv4", "cases": list(sigv4())})
    write("sigv4/curl-7.88.1.json", curl())
    write("form-md5/cases.json", form_md5())
    write("auth-v1/cases.json", auth_v1())
    write("auth-v2/cases.json", auth_v2())
    write("auth-v4/cases.json", auth_v4())
