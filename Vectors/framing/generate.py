#!/usr/bin/env python3
"""Makes requests.json and answers.json: messages that two readers could take for different ones, and some that all read alike.

Each case has a name, what it probes, and its bytes as a text of Latin-1. In a request, `<host>` stands for the authority, `<signed>`
for the field lines that sign what `sign` says (method, target, body), `<signed-lf>` for the same with bare line feeds, `<a*500>` for so many times that letter. The signature does
not cover the fields that frame a message, so a reader who takes a case for a good request finds that it verifies, and only the framing
can refuse it. `/smuggled` is a target that nobody signed: a backend that sees it was made to.

Run it from anywhere: `python3 Vectors/framing/generate.py`. Its output is the same each time.
"""

import json
import pathlib

HERE = pathlib.Path(__file__).parent
BODY = "amount=1"
CHUNKED = f"8\r\n{BODY}\r\n0\r\n\r\n"
SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: <host>\r\n\r\n"
TE = "Transfer-Encoding: chunked\r\n"

requests: list[dict] = []


def add(name: str, probes: str, data: str, method: str = "GET", target: str = "/a", body: str = "") -> None:
    requests.append({"name": name, "probes": probes, "sign": [method, target, body], "bytes": data})


def get(
    name: str,
    probes: str,
    lines: str = "",
    *,
    start: str = "GET /a HTTP/1.1",
    host: str = "Host: <host>\r\n",
    method: str = "GET",
    target: str = "/a",
    after: str = "",
    before: str = "",
) -> None:
    """A request without a body; `lines` are more field lines, each with its end."""
    add(name, probes, f"{before}{start}\r\n{host}<signed>{lines}\r\n{after}", method, target)


def post(name: str, probes: str, framing: str, wire: str = BODY, *, version: str = "HTTP/1.1") -> None:
    """A POST of BODY that is framed by `framing`, and whose bytes behind the head are `wire`."""
    add(
        name,
        probes,
        f"POST /order {version}\r\nHost: <host>\r\n<signed>{framing}\r\n{wire}",
        "POST",
        "/order",
        BODY,
    )


def chunks(name: str, probes: str, wire: str) -> None:
    post(name, probes, TE, wire)


def controls() -> None:
    get("control/get", "a plain GET")
    get("control/query", "a query", start="GET /a?b=c&d=%20 HTTP/1.1", target="/a?b=c&d=%20")
    get("control/head", "HEAD", start="HEAD /a HTTP/1.1", method="HEAD")
    get("control/delete", "DELETE without a body", start="DELETE /a HTTP/1.1", method="DELETE")
    post("control/length", "a body with its length", "Content-Length: 8\r\n")
    post("control/chunked", "a body in one chunk", TE, CHUNKED)
    post("control/chunks", "a body in three chunks", TE, "3\r\namo\r\n4\r\nunt=\r\n01\r\n1\r\n0\r\n\r\n")
    post("control/upper-case-size", "a chunk size in upper case", TE, f"0008\r\n{BODY}\r\n0\r\n\r\n")
    post("control/trailer", "a trailer", TE, f"8\r\n{BODY}\r\n0\r\nX-Sum: 1\r\n\r\n")
    get("control/empty-value", "a field without a value", "X-Empty:\r\n")
    get("control/white-space", "white space around a value", "X-Space: \t a b \t\r\n")
    get("control/long-value", "a value of 4 KiB", "X-Long: <a*4096>\r\n")
    get("control/http-1.0", "HTTP/1.0 with Host", start="GET /a HTTP/1.0")
    get("control/close", "Connection: close", "Connection: close\r\n")
    get("control/keep-alive", "Connection: keep-alive", "Connection: keep-alive\r\n")
    get("control/obs-text", "bytes over 0x7F in a value", "X-Name: caf\xe9\r\n")


def lengths() -> None:
    values = {
        "leading-zeros": "0008",
        "eighteen-digits": "0" * 17 + "8",
        "nineteen-digits": "0" * 18 + "8",
        "forty-digits": "0" * 39 + "8",
        "plus": "+8",
        "minus": "-8",
        "minus-zero": "-0",
        "hex": "0x8",
        "octal": "010",
        "decimal-point": "8.0",
        "exponent": "8e0",
        "empty": "",
        "spaces-only": "   ",
        "letters": "eight",
        "trailing-letter": "8a",
        "leading-letter": "a8",
        "two-numbers": "8 8",
        "list-equal": "8, 8",
        "list-different": "8, 0",
        "list-no-space": "8,8",
        "list-trailing-comma": "8,",
        "list-leading-comma": ",8",
        "semicolon": "8;",
        "quoted": '"8"',
        "underscore": "0_8",
        "apostrophe": "0'8",
        "over-32-bits": "4294967304",
        "over-63-bits": "9223372036854775816",
        "over-64-bits": "18446744073709551624",
        "over-128-bits": "340282366920938463463374607431768211464",
        "tab-before": "\t8",
        "tab-after": "8\t",
        "vertical-tab-before": "\x0b8",
        "vertical-tab-after": "8\x0b",
        "form-feed-before": "\x0c8",
        "nul-before": "\x008",
        "nul-after": "8\x00",
        "cr-after": "8\r",
        "nbsp-before": "\xa08",
        "nel-after": "8\x85",
        "fullwidth": "\xef\xbc\x98",
        "parenthesis": "(8)",
        "comment": "8 (eight)",
        "at-zero": "0",
    }
    for name, value in values.items():
        post(f"length/{name}", f"Content-Length: {value!r}", f"Content-Length: {value}\r\n")
    post(
        "length/zero-with-request-behind",
        "a length of 0, a request where the body would be",
        "Content-Length: 0\r\n",
        SMUGGLED,
    )
    post("length/two-equal", "two equal lengths", "Content-Length: 8\r\nContent-Length: 8\r\n")
    post(
        "length/two-different",
        "two lengths, the first too short",
        "Content-Length: 0\r\nContent-Length: 8\r\n",
    )
    post(
        "length/two-different-long-first",
        "two lengths, the second too short",
        "Content-Length: 8\r\nContent-Length: 0\r\n",
    )
    post(
        "length/two-cases",
        "two lengths, named in different case",
        "Content-Length: 8\r\ncontent-length: 0\r\n",
    )
    post("length/second-empty", "a second length that is empty", "Content-Length: 8\r\nContent-Length:\r\n")
    post(
        "length/second-bad", "a second length that is no number", "Content-Length: 8\r\nContent-Length: x\r\n"
    )
    post("length/three", "three lengths", "Content-Length: 8\r\n" * 3)
    post("length/folded", "a length on a folded line", "Content-Length:\r\n 8\r\n")
    post("length/space-before-colon", "a length with a space before its colon", "Content-Length : 8\r\n")
    post("length/name-with-tab", "a length with a tab in its name", "Content-Length\t: 8\r\n")
    post("length/name-with-nul", "a length with NUL in its name", "Content-Length\x00: 8\r\n")
    post(
        "length/name-with-underscore",
        "a length with an underscore for its hyphen, and a good one",
        "Content_Length: 0\r\nContent-Length: 8\r\n",
    )
    post(
        "length/name-with-space",
        "a length with a space for its hyphen",
        "Content Length: 0\r\nContent-Length: 8\r\n",
    )
    post(
        "length/name-behind-space",
        "a length whose line begins with a space",
        "X: y\r\n Content-Length: 0\r\nContent-Length: 8\r\n",
    )
    get(
        "length/get-with-body",
        "a GET with a length that is the request behind",
        f"Content-Length: {len(SMUGGLED) + 15}\r\n",
        after="",
    )
    get("length/get-zero", "a GET with a length of 0", "Content-Length: 0\r\n")


def transfer_encodings() -> None:
    values = {
        "upper-case": "CHUNKED",
        "mixed-case": "Chunked",
        "xchunked": "xchunked",
        "chunkedx": "chunkedx",
        "chunked-semicolon": "chunked;",
        "chunked-parameter": "chunked;q=1",
        "chunked-space-semicolon": "chunked ; a=b",
        "quoted": '"chunked"',
        "identity": "identity",
        "identity-chunked": "identity, chunked",
        "chunked-identity": "chunked, identity",
        "gzip-chunked": "gzip, chunked",
        "chunked-gzip": "chunked, gzip",
        "chunked-chunked": "chunked, chunked",
        "leading-comma": ",chunked",
        "trailing-comma": "chunked,",
        "empty": "",
        "spaces": "  ",
        "space-inside": "chun ked",
        "tab-before": "\tchunked",
        "tab-after": "chunked\t",
        "vertical-tab-before": "\x0bchunked",
        "vertical-tab-after": "chunked\x0b",
        "form-feed": "\x0cchunked",
        "nul-before": "\x00chunked",
        "nul-after": "chunked\x00",
        "backspace": "\x08chunked",
        "cr-inside": "chunk\red",
        "nbsp-before": "\xa0chunked",
        "nbsp-after": "chunked\xa0",
        "long-s": "chun\xc5\xbfed",
        "kelvin": "chun\xe2\x84\xaaed",
        "x-gzip": "x-gzip",
        "deflate": "deflate",
        "compress": "compress",
        "unknown": "cow",
        "unknown-chunked": "cow, chunked",
        "chunked-slash": "chunked/",
        "escaped": "chunk%65d",
        "trailers": "trailers, chunked",
    }
    for name, value in values.items():
        post(f"transfer/{name}", f"Transfer-Encoding: {value!r}", f"Transfer-Encoding: {value}\r\n", CHUNKED)
    for name, value in {"xchunked": "xchunked", "identity": "identity", "empty": "", "gzip": "gzip"}.items():
        post(
            f"transfer/length-and-{name}",
            f"a length and Transfer-Encoding: {value!r}",
            f"Content-Length: 8\r\nTransfer-Encoding: {value}\r\n",
        )
    post("transfer/length-first", "a length, then chunked", "Content-Length: 8\r\n" + TE, CHUNKED)
    post("transfer/length-last", "chunked, then a length", TE + "Content-Length: 8\r\n", CHUNKED)
    post(
        "transfer/length-of-chunks",
        "chunked, and the length of the coded body",
        TE + f"Content-Length: {len(CHUNKED)}\r\n",
        CHUNKED,
    )
    post(
        "transfer/length-smuggles",
        "chunked with a length that covers a request behind",
        f"Content-Length: {5 + len(SMUGGLED)}\r\n" + TE,
        "0\r\n\r\n" + SMUGGLED,
    )
    post("transfer/length-zero", "chunked and a length of 0", "Content-Length: 0\r\n" + TE, CHUNKED)
    post(
        "transfer/length-bad", "chunked and a length that is no number", "Content-Length: x\r\n" + TE, CHUNKED
    )
    post("transfer/two", "chunked on two lines", TE + TE, CHUNKED)
    post(
        "transfer/two-identity-last",
        "chunked, then identity on a line of its own",
        TE + "Transfer-Encoding: identity\r\n",
        CHUNKED,
    )
    post(
        "transfer/two-identity-first",
        "identity, then chunked on a line of its own",
        "Transfer-Encoding: identity\r\n" + TE,
        CHUNKED,
    )
    post(
        "transfer/two-unknown-last",
        "chunked, then an unknown coding on a line of its own",
        TE + "Transfer-Encoding: cow\r\n",
        CHUNKED,
    )
    post(
        "transfer/two-empty-last",
        "chunked, then an empty line of its own",
        TE + "Transfer-Encoding:\r\n",
        CHUNKED,
    )
    post("transfer/folded", "chunked on a folded line", "Transfer-Encoding:\r\n chunked\r\n", CHUNKED)
    post(
        "transfer/folded-behind",
        "a line folded behind chunked",
        "Transfer-Encoding: chunked\r\n , identity\r\n",
        CHUNKED,
    )
    post(
        "transfer/space-before-colon", "a space before the colon", "Transfer-Encoding : chunked\r\n", CHUNKED
    )
    post("transfer/tab-before-colon", "a tab before the colon", "Transfer-Encoding\t: chunked\r\n", CHUNKED)
    post("transfer/nul-in-name", "NUL behind the name", "Transfer-Encoding\x00: chunked\r\n", CHUNKED)
    post("transfer/no-space", "no space behind the colon", "Transfer-Encoding:chunked\r\n", CHUNKED)
    post(
        "transfer/underscore",
        "an underscore for the hyphen, beside a length",
        "Transfer_Encoding: chunked\r\nContent-Length: 8\r\n",
    )
    post("transfer/http-1.0", "chunked in HTTP/1.0", TE, CHUNKED, version="HTTP/1.0")
    post(
        "transfer/http-1.0-length",
        "chunked and a length in HTTP/1.0",
        TE + "Content-Length: 8\r\n",
        CHUNKED,
        version="HTTP/1.0",
    )
    post(
        "transfer/http-1.0-keep-alive",
        "chunked in HTTP/1.0 that stays open",
        TE + "Connection: keep-alive\r\n",
        CHUNKED,
        version="HTTP/1.0",
    )
    post(
        "transfer/named-by-connection",
        "chunked, which Connection names",
        TE + "Connection: close, transfer-encoding\r\n",
        CHUNKED,
    )
    post(
        "transfer/length-named-by-connection",
        "a length, which Connection names",
        "Content-Length: 8\r\nConnection: content-length\r\n",
    )
    post("transfer/te-field", "TE: chunked beside a length", "TE: chunked\r\nContent-Length: 8\r\n")
    post(
        "transfer/lf-in-value",
        "chunked behind a bare LF in another field",
        "X: y\nTransfer-Encoding: chunked\r\nContent-Length: 8\r\n",
    )
    post(
        "transfer/cr-in-value",
        "chunked behind a bare CR in another field",
        "X: y\rTransfer-Encoding: chunked\r\nContent-Length: 8\r\n",
    )
    get("transfer/get-chunked-empty", "a GET with an empty chunked body", TE, after="0\r\n\r\n")


def chunk_sizes() -> None:
    sizes = {
        "plus": "+8",
        "minus": "-8",
        "hex-prefix": "0x8",
        "hex-prefix-upper": "0X8",
        "space-before": " 8",
        "space-after": "8 ",
        "tab-before": "\t8",
        "tab-after": "8\t",
        "many-spaces-after": "8     ",
        "empty": "",
        "letter-g": "g",
        "letter-behind": "8g",
        "letter-before": "g8",
        "point": "8.0",
        "exponent": "8e0",
        "zeros": "00000008",
        "fifteen-digits": "0" * 14 + "8",
        "sixteen-digits": "0" * 15 + "8",
        "seventeen-digits": "0" * 16 + "8",
        "forty-digits": "0" * 39 + "8",
        "over-32-bits": "100000008",
        "over-64-bits": "10000000000000008",
        "all-ones": "ffffffffffffffff",
        "over-63-bits": "8000000000000008",
        "sixty-bits": "fffffffffffffff",
        "underscore": "0_8",
        "quoted": '"8"',
        "comma": "8,",
        "vertical-tab": "8\x0b",
        "nul": "8\x00",
        "nul-before": "\x008",
        "cr": "8\r",
        "high-byte": "8\xff",
        "fullwidth": "\xef\xbc\x98",
    }
    for name, size in sizes.items():
        chunks(f"chunk-size/{name}", f"a chunk size of {size!r}", f"{size}\r\n{BODY}\r\n0\r\n\r\n")
    chunks("chunk-size/too-small", "data that is longer than its size", f"7\r\n{BODY}\r\n0\r\n\r\n")
    chunks("chunk-size/too-large", "data that is shorter than its size", f"9\r\n{BODY}\r\n0\r\n\r\n")
    chunks("chunk-size/last-zeros", "a last chunk of many zeros", f"8\r\n{BODY}\r\n000000\r\n\r\n")
    chunks("chunk-size/last-space", "a last chunk with a space behind it", f"8\r\n{BODY}\r\n0 \r\n\r\n")
    chunks("chunk-size/last-minus", "a last chunk of minus zero", f"8\r\n{BODY}\r\n-0\r\n\r\n")


def chunk_lines() -> None:
    extensions = {
        "name": ";a",
        "pair": ";a=b",
        "quoted": ';a="b c"',
        "quoted-escape": ';a="b\\"c"',
        "two": ";a=b;c=d",
        "empty": ";",
        "space-before": " ;a=b",
        "space-after": "; a=b",
        "tab": ";\ta",
        "equals-only": ";=",
        "no-value": ";a=",
        "spaces-in-value": ";a=b c",
        "unclosed-quote": ';a="b',
        "control": ";a=\x01",
        "nul": ";a=\x00",
        "delete": ";a=\x7f",
        "high-byte": ";a=\xff",
        "lf": ";a\nb",
        "cr": ";a\rb",
        "one-kilobyte": ";<a*1000>",
        "five-kilobytes": ";<a*5000>",
        "seventy-kilobytes": ";<a*70000>",
        "comma": ",a",
        "colon": ":a",
        "equals": "=a",
        "slash": ";a/b",
        "at": ";a=b@c",
        "semicolons": ";;;",
    }
    for name, extension in extensions.items():
        chunks(
            f"chunk-extension/{name}",
            f"a chunk extension {extension!r}",
            f"8{extension}\r\n{BODY}\r\n0\r\n\r\n",
        )
    chunks("chunk-extension/last", "an extension of the last chunk", f"8\r\n{BODY}\r\n0;a=b\r\n\r\n")
    chunks(
        "chunk-extension/last-lf",
        "a bare LF in an extension of the last chunk",
        f"8\r\n{BODY}\r\n0;\n\r\n\r\n",
    )
    chunks(
        "chunk-extension/newline-smuggles",
        "an extension with a bare LF, and a size behind it",
        f"8;\n{BODY}\r\n0\r\n\r\n",
    )
    ends = {
        "size-lf": f"8\n{BODY}\r\n0\r\n\r\n",
        "size-cr": f"8\r{BODY}\r\n0\r\n\r\n",
        "data-lf": f"8\r\n{BODY}\n0\r\n\r\n",
        "data-cr": f"8\r\n{BODY}\r0\r\n\r\n",
        "data-none": f"8\r\n{BODY}0\r\n\r\n",
        "data-lf-cr": f"8\r\n{BODY}\n\r0\r\n\r\n",
        "data-two": f"8\r\n{BODY}\r\n\r\n0\r\n\r\n",
        "data-other": f"8\r\n{BODY}XX0\r\n\r\n",
        "data-space": f"8\r\n{BODY} \r\n0\r\n\r\n",
        "last-lf": f"8\r\n{BODY}\r\n0\n\r\n",
        "last-cr": f"8\r\n{BODY}\r\n0\r\r\n",
        "end-lf": f"8\r\n{BODY}\r\n0\r\n\n",
        "end-cr-only": f"8\r\n{BODY}\r\n0\r\n\r",
        "all-lf": f"8\n{BODY}\n0\n\n",
        "no-end": f"8\r\n{BODY}\r\n0\r\n",
        "no-last": f"8\r\n{BODY}\r\n",
        "size-cr-cr-lf": f"8\r\r\n{BODY}\r\n0\r\n\r\n",
        "begins-with-crlf": f"\r\n8\r\n{BODY}\r\n0\r\n\r\n",
        "data-for-size": f"{BODY}\r\n0\r\n\r\n",
    }
    for name, wire in ends.items():
        chunks(f"chunk-end/{name}", f"chunks {wire!r}", wire)
    trailers = {
        "two": "A: b\r\nC: d\r\n",
        "empty-value": "A:\r\n",
        "no-colon": "A\r\n",
        "no-colon-long": "<a*300>\r\n",
        "request-line": "GET /smuggled HTTP/1.1\r\n",
        "space-before-colon": "A : b\r\n",
        "tab-before-colon": "A\t: b\r\n",
        "no-name": ": b\r\n",
        "folded": "A: b\r\n c\r\n",
        "begins-with-space": " A: b\r\n",
        "lf": "A: b\n",
        "cr": "A: b\rC: d\r\n",
        "nul": "A: b\x00\r\n",
        "nul-in-name": "A\x00: b\r\n",
        "control": "A: \x01\r\n",
        "high-byte-in-name": "A\xff: b\r\n",
        "parenthesis-in-name": "A(: b\r\n",
        "space-in-name": "A B: c\r\n",
        "content-length": "Content-Length: 5\r\n",
        "transfer-encoding": "Transfer-Encoding: chunked\r\n",
        "host": "Host: other.example\r\n",
        "underscore": "A_B: c\r\n",
        "many": "A: b\r\n" * 64,
        "too-many": "A: b\r\n" * 1000,
        "long": "A: <a*6000>\r\n",
        "too-long": "A: <a*70000>\r\n",
        "lf-only-line": "\n",
        "authorization": "Authorization: x\r\n",
    }
    for name, lines in trailers.items():
        chunks(f"trailer/{name}", f"trailers {lines[:40]!r}", f"8\r\n{BODY}\r\n0\r\n{lines}\r\n")


def head_bytes() -> None:
    for code in [0, 1, 7, 8, 0x0B, 0x0C, 0x0E, 0x1B, 0x1F, 0x7F]:
        get(f"byte/{code:02x}-in-value", f"0x{code:02X} in a value", f"X-A: b{chr(code)}c\r\n")
    for code in [
        0,
        1,
        9,
        0x0B,
        0x20,
        0x22,
        0x28,
        0x2C,
        0x2F,
        0x3B,
        0x3D,
        0x40,
        0x5B,
        0x5C,
        0x7B,
        0x7F,
        0x80,
        0xFF,
    ]:
        get(f"byte/{code:02x}-in-name", f"0x{code:02X} in a field name", f"X{chr(code)}A: b\r\n")
    add("line/all-lf", "every line ends in a bare LF", "GET /a HTTP/1.1\nHost: <host>\n<signed-lf>\n")
    add(
        "line/first-lf", "the request line ends in a bare LF", "GET /a HTTP/1.1\nHost: <host>\r\n<signed>\r\n"
    )
    add("line/host-lf", "the Host line ends in a bare LF", "GET /a HTTP/1.1\r\nHost: <host>\n<signed>\r\n")
    add("line/end-lf", "the empty line is a bare LF", "GET /a HTTP/1.1\r\nHost: <host>\r\n<signed>\n")
    add(
        "line/last-field-lf",
        "the last field line ends in a bare LF",
        "GET /a HTTP/1.1\r\nHost: <host>\r\n<signed>X: y\n\r\n",
    )
    add(
        "line/first-cr", "the request line ends in a bare CR", "GET /a HTTP/1.1\rHost: <host>\r\n<signed>\r\n"
    )
    add("line/end-cr", "the empty line is a bare CR", "GET /a HTTP/1.1\r\nHost: <host>\r\n<signed>\r")
    get("line/cr-cr-lf", "a field line that ends in CR CR LF", "X: y\r\r\n")
    get("line/cr-in-value", "a bare CR within a value", "X: y\rZ: w\r\n")
    get("line/lf-smuggles-host", "a Host behind a bare LF", "X: y\nHost: other.example\r\n")
    get("line/cr-smuggles-host", "a Host behind a bare CR", "X: y\rHost: other.example\r\n")
    get("line/lf-cr", "a field line that ends in LF CR", "X: y\n\rZ: w\r\n")
    get("line/end-smuggles-lf", "LF LF within a value, and a request behind", f"X: y\n\n{SMUGGLED[:-4]}\r\n")
    get("line/end-smuggles-cr", "CR CR within a value, and a request behind", f"X: y\r\r{SMUGGLED[:-4]}\r\n")
    folds = {
        "space": "X: a\r\n b\r\n",
        "tab": "X: a\r\n\tb\r\n",
        "empty": "X: a\r\n \r\n",
        "first": " X: a\r\n",
        "with-colon": "X: a\r\n Host: other.example\r\n",
        "lf": "X: a\n b\r\n",
        "length": "X: a\r\n Content-Length: 5\r\n",
        "many": "X: a\r\n b\r\n c\r\n d\r\n",
    }
    for name, lines in folds.items():
        get(f"fold/{name}", f"folded lines {lines!r}", lines)
    add(
        "fold/first-line",
        "white space before the first field",
        "GET /a HTTP/1.1\r\n X: a\r\nHost: <host>\r\n<signed>\r\n",
    )
    add("fold/host", "a Host on a folded line", "GET /a HTTP/1.1\r\nHost:\r\n <host>\r\n<signed>\r\n")
    odd = {
        "space-before-colon": "X-A : b\r\n",
        "tab-before-colon": "X-A\t: b\r\n",
        "no-colon": "X-A\r\n",
        "no-name": ": b\r\n",
        "empty-line-with-space": " \r\n",
        "only-colon": ":\r\n",
        "two-colons": "X-A:: b\r\n",
        "space-in-name": "X A: b\r\n",
        "request-line": "GET /smuggled HTTP/1.1\r\n",
        "equals": "X-A=b\r\n",
        "http-2-name": ":path: /smuggled\r\n",
        "quoted-name": '"X-A": b\r\n',
        "semicolon": "X-A; b\r\n",
        "high-name": "\xc3\x9c: b\r\n",
    }
    for name, lines in odd.items():
        get(f"field/{name}", f"a field line {lines!r}", lines)


def hosts() -> None:
    values = {
        "empty": "Host:\r\n",
        "missing": "",
        "two-equal": "Host: <host>\r\nHost: <host>\r\n",
        "two-different": "Host: <host>\r\nHost: other.example\r\n",
        "two-different-last": "Host: other.example\r\nHost: <host>\r\n",
        "two-cases": "Host: <host>\r\nHOST: other.example\r\n",
        "second-empty": "Host: <host>\r\nHost:\r\n",
        "comma": "Host: <host>, other.example\r\n",
        "space": "Host: <host> other.example\r\n",
        "at": "Host: user@<host>\r\n",
        "slash": "Host: <host>/smuggled\r\n",
        "backslash": "Host: <host>\\smuggled\r\n",
        "query": "Host: <host>?x\r\n",
        "fragment": "Host: <host>#x\r\n",
        "scheme": "Host: http://<host>\r\n",
        "space-before-colon": "Host : <host>\r\n",
        "folded": "Host: other.example\r\n <host>\r\n",
        "tab-inside": "Host: <host>\tx\r\n",
        "nul": "Host: <host>\x00\r\n",
        "control": "Host: <host>\x01\r\n",
        "high-byte": "Host: <host>\xff\r\n",
        "percent": "Host: %31<host>\r\n",
        "quote": 'Host: "<host>"\r\n',
        "apostrophe": "Host: <host>'\r\n",
        "brackets": "Host: [<host>]\r\n",
        "angle": "Host: <<host>>\r\n",
        "two-ports": "Host: <host>:80\r\n",
        "colon-only": "Host: :\r\n",
        "semicolon": "Host: <host>;\r\n",
        "pipe": "Host: <host>|x\r\n",
        "brace": "Host: {<host>}\r\n",
        "star": "Host: *\r\n",
        "white-space-around": "Host: \t <host> \t\r\n",
        "no-space": "Host:<host>\r\n",
        "upper-case-name": "HOST: <host>\r\n",
        "dot-dot": "Host: a..b\r\n",
        "underscore-name": "Ho_st: <host>\r\n",
    }
    for name, lines in values.items():
        get(f"host/{name}", f"Host as {lines!r}", host=lines)
    get("host/forwarded", "X-Forwarded-Host with another host", "X-Forwarded-Host: other.example\r\n")
    get("host/missing-1.0", "HTTP/1.0 without Host", host="", start="GET /a HTTP/1.0")
    get(
        "host/two-1.0",
        "HTTP/1.0 with two Hosts",
        host="Host: <host>\r\nHost: other.example\r\n",
        start="GET /a HTTP/1.0",
    )


def targets() -> None:
    values = {
        "absolute": ("http://<host>/a", "/a"),
        "absolute-upper": ("HTTP://<host>/a", "/a"),
        "absolute-other-host": ("http://other.example/a", "/a"),
        "absolute-other-port": ("http://<host>0/a", "/a"),
        "absolute-no-path": ("http://<host>", "/"),
        "absolute-query": ("http://<host>?x", "/?x"),
        "absolute-user": ("http://user@<host>/a", "/a"),
        "absolute-other-user": ("http://<host>@other.example/a", "/a"),
        "absolute-empty-host": ("http:///a", "/a"),
        "absolute-one-slash": ("http:/<host>/a", "/a"),
        "absolute-https": ("https://<host>/a", "/a"),
        "absolute-ftp": ("ftp://<host>/a", "/a"),
        "absolute-backslash": ("http://<host>\\@other.example/a", "/a"),
        "absolute-fragment": ("http://<host>/a#b", "/a"),
        "absolute-websocket": ("ws://<host>/a", "/a"),
        "authority": ("<host>", "/a"),
        "asterisk": ("*", "*"),
        "empty": ("", "/a"),
        "relative": ("a", "/a"),
        "dot": ("./a", "/a"),
        "two-slashes": ("//a", "//a"),
        "slashes-host": ("//other.example/a", "//other.example/a"),
        "query-only": ("?x", "/?x"),
        "fragment": ("/a#b", "/a#b"),
        "space": ("/a b", "/a b"),
        "tab": ("/a\tb", "/a\tb"),
        "nul": ("/a\x00b", "/a"),
        "high-byte": ("/caf\xe9", "/caf\xe9"),
        "utf-8": ("/caf\xc3\xa9", "/caf"),
        "control": ("/a\x01", "/a"),
        "delete": ("/a\x7f", "/a"),
        "cr": ("/a\rb", "/a"),
        "percent-alone": ("/a%", "/a%"),
        "percent-one": ("/a%4", "/a%4"),
        "percent-bad": ("/a%zz", "/a%zz"),
        "percent-nul": ("/a%00", "/a%00"),
        "percent-slash": ("/a%2fb", "/a%2fb"),
        "percent-backslash": ("/a%5cb", "/a%5cb"),
        "percent-crlf": ("/a%0d%0aX:y", "/a%0d%0aX:y"),
        "percent-dots": ("/a/%2e%2e/b", "/a/%2e%2e/b"),
        "percent-overlong": ("/a%c0%af", "/a%c0%af"),
        "percent-unicode": ("/a%u002f", "/a%u002f"),
        "percent-query-bad": ("/a?b=%zz", "/a?b=%zz"),
        "percent-query-nul": ("/a?b=%00", "/a?b=%00"),
        "dots": ("/a/../b", "/a/../b"),
        "dots-above": ("/../../a", "/../../a"),
        "backslash": ("/a\\b", "/a\\b"),
        "semicolon": ("/a;b=c", "/a;b=c"),
        "quote": ('/a"b', '/a"b'),
        "angle": ("/a<b>", "/a<b>"),
        "pipe": ("/a|b", "/a|b"),
        "brace": ("/a{b}", "/a{b}"),
        "caret": ("/a^b", "/a^b"),
        "backtick": ("/a`b", "/a`b"),
        "two-queries": ("/a?b?c", "/a?b?c"),
        "brackets": ("/a[b]", "/a[b]"),
        "colon": ("/a:b", "/a:b"),
        "long": ("/<a*7000>", "/<a*7000>"),
        "too-long": ("/<a*70000>", "/a"),
    }
    for name, (sent, signed) in values.items():
        get(f"target/{name}", f"the target {sent!r}", start=f"GET {sent} HTTP/1.1", target=signed)
    get("target/options-asterisk", "OPTIONS *", start="OPTIONS * HTTP/1.1", method="OPTIONS", target="*")
    get(
        "target/absolute-no-host", "absolute form without Host", start="GET http://<host>/a HTTP/1.1", host=""
    )
    get(
        "target/absolute-1.0-no-host",
        "absolute form without Host in HTTP/1.0",
        start="GET http://<host>/a HTTP/1.0",
        host="",
    )
    get(
        "target/connect", "CONNECT with the authority form", start="CONNECT <host> HTTP/1.1", method="CONNECT"
    )
    get("target/connect-path", "CONNECT with a path", start="CONNECT /a HTTP/1.1", method="CONNECT")


def start_lines() -> None:
    for method in [
        "get",
        "Get",
        "TRACE",
        "PURGE",
        "FOO",
        "PROPFIND",
        "M-SEARCH",
        "G_T",
        "GET1",
        "G.T",
        "G:T",
        "G/T",
        "G(T",
        'G"T',
        "G\x00T",
        "G\xe9T",
        "G,T",
        "@GET",
        "GE\tT",
        "<a*33>",
        "<a*9000>",
        "PRI",
        "HTTP/1.1",
        "PATCH",
        "QUERY",
    ]:
        slug = "".join(c if c.isascii() and c.isalnum() else f"-{ord(c):02x}-" for c in method).strip("-")
        get(
            f"method/{slug}",
            f"the method {method!r}",
            start=f"{method} /a HTTP/1.1",
            method=method if method.isascii() and method.isalpha() else "GET",
        )
    get("method/empty", "no method", start=" /a HTTP/1.1")
    get("method/space-before", "a space before the method", start=" GET /a HTTP/1.1")
    get("method/tab-between", "a tab behind the method", start="GET\t/a HTTP/1.1")
    get("method/two-spaces", "two spaces behind the method", start="GET  /a HTTP/1.1")
    get(
        "method/head-with-length",
        "HEAD with a length of 0",
        "Content-Length: 0\r\n",
        start="HEAD /a HTTP/1.1",
        method="HEAD",
    )
    get(
        "method/trace-with-length",
        "TRACE with a length of 0",
        "Content-Length: 0\r\n",
        start="TRACE /a HTTP/1.1",
        method="TRACE",
    )
    for version in [
        "HTTP/0.9",
        "HTTP/1.2",
        "HTTP/1.9",
        "HTTP/2.0",
        "HTTP/3",
        "HTTP/1",
        "HTTP/1.",
        "HTTP/.1",
        "HTTP/01.1",
        "HTTP/1.01",
        "HTTP/1.1.1",
        "HTTP/11",
        "HTTP/1.10",
        "http/1.1",
        "Http/1.1",
        "HTTP 1.1",
        "HTTPS/1.1",
        "HTTP/1,1",
        "HTTP/+1.1",
        "HTTP/1.1a",
        "HTTP/a.b",
        "ICY/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1\t",
        " HTTP/1.1",
        "\tHTTP/1.1",
        "HTTP/1.1 x",
        "HTTP\\1.1",
        "HTTP/1.\xb9",
        "XHTTP/1.1",
    ]:
        slug = "".join(
            c if c.isascii() and (c.isalnum() or c == ".") else f"-{ord(c):02x}-" for c in version
        ).strip("-")
        get(f"version/{slug}", f"the version {version!r}", start=f"GET /a {version}")
    get("version/none", "no version", start="GET /a")
    get("version/none-space", "a space and no version", start="GET /a ")
    add("version/simple", "HTTP/0.9 as it was", "GET /a\r\n")
    add("version/http-2-preface", "the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    add("version/tls", "a TLS hello", "\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03ab\r\n\r\n")
    for name, before in {
        "crlf": "\r\n",
        "two-crlf": "\r\n\r\n",
        "ten-crlf": "\r\n" * 10,
        "lf": "\n",
        "cr": "\r",
        "cr-crlf": "\r\r\n",
        "space": " ",
        "space-crlf": " \r\n",
        "nul": "\x00",
        "tab": "\t",
        "bom": "\xef\xbb\xbf",
    }.items():
        get(f"leading/{name}", f"{before!r} before the request", before=before)
    for name, after in {
        "crlf": "\r\n",
        "two-crlf": "\r\n\r\n",
        "lf": "\n",
        "letter": "X",
        "nul": "\x00",
        "half-request": "GET /smuggled HTTP/1.1\r\nX: ",
        "space": " ",
        "field": "X: y\r\n\r\n",
    }.items():
        get(f"behind/{name}", f"{after!r} behind a GET", after=after)
        post(f"behind/body-{name}", f"{after!r} behind a body", "Content-Length: 8\r\n", BODY + after)


def other_fields() -> None:
    for name, value in {
        "continue": "100-continue",
        "continue-upper": "100-Continue",
        "unknown": "200-ok",
        "two": "100-continue, x",
        "empty": "",
        "parameter": "100-continue; a=b",
    }.items():
        post(f"expect/{name}", f"Expect: {value!r}", f"Expect: {value}\r\nContent-Length: 8\r\n")
    post(
        "expect/twice",
        "Expect on two lines",
        "Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 8\r\n",
    )
    post(
        "expect/http-1.0",
        "Expect in HTTP/1.0",
        "Expect: 100-continue\r\nContent-Length: 8\r\n",
        version="HTTP/1.0",
    )
    get("expect/get", "Expect without a body", "Expect: 100-continue\r\n")
    upgrades = {
        "h2c": "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n",
        "h2c-without-connection": "Upgrade: h2c\r\n",
        "websocket": "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        "unknown": "Connection: Upgrade\r\nUpgrade: x/1\r\n",
        "tls": "Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n",
    }
    for name, lines in upgrades.items():
        get(f"upgrade/{name}", f"an upgrade {lines[:40]!r}", lines)
    post(
        "upgrade/with-body",
        "an upgrade of a request with a body",
        "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 8\r\n",
    )
    for name, value in {
        "host": "host",
        "close-twice": "close, close",
        "close-and-keep": "close, keep-alive",
        "unknown": "x-unknown",
        "empty": "",
        "comma": ",",
        "content-type": "content-type",
        "signature": "signature",
        "quoted": '"close"',
        "authorization": "close, authorization",
    }.items():
        get(f"connection/{name}", f"Connection: {value!r}", f"Connection: {value}\r\n")
    get(
        "connection/twice",
        "Connection on two lines that differ",
        "Connection: close\r\nConnection: keep-alive\r\n",
    )
    get("connection/proxy", "Proxy-Connection", "Proxy-Connection: close\r\n")
    for count in [60, 90, 150, 1000]:
        get(f"count/{count}", f"{count} fields more", "X-A: b\r\n" * count)
    for size in [7000, 12000, 40000, 100000]:
        get(f"size/value-{size}", f"a value of {size} bytes", f"X-A: <a*{size}>\r\n")
        get(f"size/name-{size}", f"a name of {size} bytes", f"<a*{size}>: b\r\n")
    for name in [
        "Content-Type",
        "Authorization",
        "Content-Encoding",
        "Date",
        "Accept",
        "If-None-Match",
        "Range",
        "Origin",
        "User-Agent",
    ]:
        get(f"twice/{name.lower()}", f"{name} twice", f"{name}: a\r\n{name}: b\r\n")
    for name in [
        "X_A",
        "X_",
        "_",
        "Content_Type",
        "X_Forwarded_For",
        "Countersign_Account",
        "Authorization_",
        "Connection_",
    ]:
        get(
            f"underscore/{name.lower().strip('_') or 'alone'}{'-end' if name.endswith('_') and name != '_' else ''}",
            f"the field name {name!r}",
            f"{name}: b\r\n",
        )


answers: list[dict] = []


def answer(name: str, probes: str, data: str, outcome: str, method: str = "GET") -> None:
    """`outcome`: what the client must see: `passed`, `refused` (502), `cut` (a part, and the end of its connection), or `either`. Whatever it is, no
    other request may get a byte of it; bytes that belong to nobody say POISON."""
    answers.append({"name": name, "probes": probes, "method": method, "outcome": outcome, "bytes": data})


def make_answers() -> None:
    ok = "HTTP/1.1 200 OK\r\n"
    poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"
    length = "Content-Length: 4\r\n"
    answer("length", "an answer with its length", ok + length + "\r\ngood", "passed")
    answer("chunked", "an answer in chunks", ok + TE + "\r\n4\r\ngood\r\n0\r\n\r\n", "passed")
    answer("trailer", "an answer with a trailer", ok + TE + "\r\n4\r\ngood\r\n0\r\nX: y\r\n\r\n", "passed")
    answer("no-reason", "a status line without a reason", "HTTP/1.1 200\r\n" + length + "\r\ngood", "passed")
    answer(
        "continue",
        "100 before the answer",
        "HTTP/1.1 100 Continue\r\n\r\n" + ok + length + "\r\ngood",
        "passed",
    )
    answer(
        "early-hints",
        "103 before the answer",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok + length + "\r\ngood",
        "passed",
    )
    answer("second-answer", "a second answer behind the first", ok + length + "\r\ngood" + poison, "passed")
    answer(
        "second-answer-chunked",
        "a second answer behind a chunked one",
        ok + TE + "\r\n4\r\ngood\r\n0\r\n\r\n" + poison,
        "passed",
    )
    answer(
        "head-with-body",
        "HEAD answered with a body",
        ok + "Content-Length: 6\r\n\r\nPOISON",
        "passed",
        "HEAD",
    )
    answer(
        "head-with-answer",
        "HEAD answered with a body that is an answer",
        ok + f"Content-Length: {len(poison)}\r\n\r\n" + poison,
        "passed",
        "HEAD",
    )
    answer(
        "head-chunked", "HEAD answered in chunks", ok + TE + "\r\n6\r\nPOISON\r\n0\r\n\r\n", "passed", "HEAD"
    )
    answer(
        "204-with-body",
        "204 with a length and a body",
        "HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\nPOISON",
        "passed",
    )
    answer(
        "204-with-answer",
        "204 with another answer behind",
        "HTTP/1.1 204 No Content\r\n\r\n" + poison,
        "passed",
    )
    answer(
        "204-chunked",
        "204 in chunks",
        "HTTP/1.1 204 No Content\r\n" + TE + "\r\n6\r\nPOISON\r\n0\r\n\r\n",
        "either",
    )
    answer(
        "304-with-body",
        "304 with a length and a body",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\nPOISON",
        "passed",
    )
    answer(
        "304-with-answer",
        "304 with another answer behind",
        "HTTP/1.1 304 Not Modified\r\n\r\n" + poison,
        "passed",
    )
    answer(
        "205-with-body",
        "205 with a body",
        "HTTP/1.1 205 Reset Content\r\nContent-Length: 4\r\n\r\ngood",
        "passed",
    )
    answer(
        "100-with-body",
        "100 with a length and a body",
        "HTTP/1.1 100 Continue\r\nContent-Length: 6\r\n\r\nPOISON",
        "refused",
    )
    answer(
        "100-with-chunks",
        "100 in chunks",
        "HTTP/1.1 100 Continue\r\n" + TE + "\r\n6\r\nPOISON\r\n0\r\n\r\n",
        "refused",
    )
    answer("100-only", "100 and nothing behind it", "HTTP/1.1 100 Continue\r\n\r\n", "refused")
    answer(
        "101",
        "a switch of protocols that nobody asked for",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nPOISON",
        "refused",
    )
    refused = {
        "two-lengths-equal": ok + length + length + "\r\ngood",
        "two-lengths": ok + length + "Content-Length: 40\r\n\r\ngood" + poison,
        "length-list": ok + "Content-Length: 4, 4\r\n\r\ngood",
        "length-plus": ok + "Content-Length: +4\r\n\r\ngood",
        "length-minus": ok + "Content-Length: -4\r\n\r\ngood",
        "length-hex": ok + "Content-Length: 0x4\r\n\r\ngood",
        "length-empty": ok + "Content-Length:\r\n\r\ngood",
        "length-huge": ok + "Content-Length: 18446744073709551620\r\n\r\ngood",
        "length-and-chunked": ok + length + TE + "\r\n4\r\ngood\r\n0\r\n\r\n",
        "chunked-and-length": ok + TE + length + "\r\n4\r\ngood\r\n0\r\n\r\n",
        "xchunked": ok + "Transfer-Encoding: xchunked\r\n\r\ngood",
        "gzip-chunked": ok + "Transfer-Encoding: gzip, chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\n",
        "identity": ok + "Transfer-Encoding: identity\r\n\r\ngood",
        "chunked-twice": ok + TE + TE + "\r\n4\r\ngood\r\n0\r\n\r\n",
        "chunked-1.0": "HTTP/1.0 200 OK\r\n" + TE + "\r\n4\r\ngood\r\n0\r\n\r\n",
        "fold": ok + "X: a\r\n b\r\n" + length + "\r\ngood",
        "fold-length": ok + "Content-Length:\r\n 4\r\n\r\ngood",
        "lf": ok.replace("\r\n", "\n") + length.replace("\r\n", "\n") + "\ngood",
        "lf-in-field": ok + "X: a\nContent-Length: 4\r\n\r\ngood",
        "cr-in-field": ok + "X: a\rContent-Length: 4\r\n\r\ngood",
        "nul-in-field": ok + "X: a\x00b\r\n" + length + "\r\ngood",
        "space-before-colon": ok + "Content-Length : 4\r\n\r\ngood",
        "no-colon": ok + "Content-Length 4\r\n" + length + "\r\ngood",
        "no-name": ok + ": x\r\n" + length + "\r\ngood",
        "http-2": "HTTP/2.0 200 OK\r\n" + length + "\r\ngood",
        "http-0.9": "good\r\n\r\n",
        "status-two-digits": "HTTP/1.1 20 OK\r\n" + length + "\r\ngood",
        "status-four-digits": "HTTP/1.1 2000 OK\r\n" + length + "\r\ngood",
        "status-99": "HTTP/1.1 099 OK\r\n" + length + "\r\ngood",
        "status-600": "HTTP/1.1 600 OK\r\n" + length + "\r\ngood",
        "status-letters": "HTTP/1.1 2OO OK\r\n" + length + "\r\ngood",
        "status-plus": "HTTP/1.1 +20 OK\r\n" + length + "\r\ngood",
        "leading-crlf": "\r\n" + ok + length + "\r\ngood",
        "leading-space": " " + ok + length + "\r\ngood",
        "lower-case": "http/1.1 200 OK\r\n" + length + "\r\ngood",
        "many-fields": ok + "X: y\r\n" * 200 + length + "\r\ngood",
        "large-head": ok + "X: <a*70000>\r\n" + length + "\r\ngood",
    }
    for name, data in refused.items():
        answer(name, f"an answer that begins {data[:48]!r}", data, "refused")
    # From here on the client has part of the answer when the fault is seen: it is cut off, and the connection with it.
    cut = {
        "short": ok + "Content-Length: 40\r\n\r\ngood",
        "chunk-size-bad": ok + TE + "\r\nxx\r\ngood\r\n0\r\n\r\n",
        "chunk-lf": ok + TE + "\r\n4\ngood\r\n0\r\n\r\n",
        "chunk-too-long": ok + TE + "\r\n3\r\ngood\r\n0\r\n\r\n",
        "chunk-huge": ok + TE + "\r\nfffffffffffffffff\r\ngood\r\n0\r\n\r\n",
        "chunk-no-end": ok + TE + "\r\n4\r\ngood\r\n",
        "trailer-no-colon": ok + TE + "\r\n4\r\ngood\r\n0\r\nPOISON\r\n\r\n",
        "trailer-status-line": ok + TE + "\r\n4\r\ngood\r\n0\r\nHTTP/1.1 200 OK\r\n\r\n",
        "trailer-fold": ok + TE + "\r\n4\r\ngood\r\n0\r\nX: y\r\n z\r\n\r\n",
        "trailer-lf": ok + TE + "\r\n4\r\ngood\r\n0\r\nX: y\n\r\n",
        "trailers-many": ok + TE + "\r\n4\r\ngood\r\n0\r\n" + "X: y\r\n" * 65 + "\r\n",
    }
    for name, data in cut.items():
        answer(name, f"an answer that ends {data[-30:]!r}", data, "cut")
    answer("until-close", "an answer that ends with its connection", ok + "\r\ngood", "passed")
    answer(
        "until-close-1.0",
        "an answer of HTTP/1.0 that ends with its connection",
        "HTTP/1.0 200 OK\r\n\r\ngood",
        "passed",
    )
    answer("underscore", "a field name with an underscore", ok + "X_A: b\r\n" + length + "\r\ngood", "passed")
    answer("nothing", "no answer at all", "", "refused")


def main() -> None:
    for group in (
        controls,
        lengths,
        transfer_encodings,
        chunk_sizes,
        chunk_lines,
        head_bytes,
        hosts,
        targets,
        start_lines,
        other_fields,
    ):
        group()
    make_answers()
    for name, cases in (("requests", requests), ("answers", answers)):
        names = [case["name"] for case in cases]
        assert len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)
        lines = ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases)
        (HERE / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="ascii")
        print(f"{len(cases)} {name}")


if __name__ == "__main__":
    main()
