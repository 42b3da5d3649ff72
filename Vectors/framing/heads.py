"""Requests whose heads can be read in more than one way."""

from case import BODY, SMUGGLED, TE, add, get, post


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
        "line/last-field-lf", "the last field line ends in a bare LF",
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
        "space": "X: a\r\n b\r\n", "tab": "X: a\r\n\tb\r\n", "empty": "X: a\r\n \r\n", "first": " X: a\r\n",
        "with-colon": "X: a\r\n Host: other.example\r\n", "lf": "X: a\n b\r\n",
        "length": "X: a\r\n Content-Length: 5\r\n", "many": "X: a\r\n b\r\n c\r\n d\r\n",
    }
    for name, lines in folds.items():
        get(f"fold/{name}", f"folded lines {lines!r}", lines)
    add(
        "fold/first-line", "white space before the first field",
        "GET /a HTTP/1.1\r\n X: a\r\nHost: <host>\r\n<signed>\r\n",
    )
    add("fold/host", "a Host on a folded line", "GET /a HTTP/1.1\r\nHost:\r\n <host>\r\n<signed>\r\n")
    odd = {
        "space-before-colon": "X-A : b\r\n", "tab-before-colon": "X-A\t: b\r\n", "no-colon": "X-A\r\n",
        "no-name": ": b\r\n", "empty-line-with-space": " \r\n", "only-colon": ":\r\n",
        "two-colons": "X-A:: b\r\n", "space-in-name": "X A: b\r\n",
        "request-line": "GET /smuggled HTTP/1.1\r\n", "equals": "X-A=b\r\n",
        "http-2-name": ":path: /smuggled\r\n", "quoted-name": '"X-A": b\r\n', "semicolon": "X-A; b\r\n",
        "high-name": "\xc3\x9c: b\r\n",
    }
    for name, lines in odd.items():
        get(f"field/{name}", f"a field line {lines!r}", lines)


def hosts() -> None:
    values = {
        "empty": "Host:\r\n", "missing": "", "two-equal": "Host: <host>\r\nHost: <host>\r\n",
        "two-different": "Host: <host>\r\nHost: other.example\r\n",
        "two-different-last": "Host: other.example\r\nHost: <host>\r\n",
        "two-cases": "Host: <host>\r\nHOST: other.example\r\n", "second-empty": "Host: <host>\r\nHost:\r\n",
        "comma": "Host: <host>, other.example\r\n", "space": "Host: <host> other.example\r\n",
        "at": "Host: user@<host>\r\n", "slash": "Host: <host>/smuggled\r\n",
        "backslash": "Host: <host>\\smuggled\r\n", "query": "Host: <host>?x\r\n",
        "fragment": "Host: <host>#x\r\n", "scheme": "Host: http://<host>\r\n",
        "space-before-colon": "Host : <host>\r\n", "folded": "Host: other.example\r\n <host>\r\n",
        "tab-inside": "Host: <host>\tx\r\n", "nul": "Host: <host>\x00\r\n", "control": "Host: <host>\x01\r\n",
        "high-byte": "Host: <host>\xff\r\n", "percent": "Host: %31<host>\r\n", "quote": 'Host: "<host>"\r\n',
        "apostrophe": "Host: <host>'\r\n", "brackets": "Host: [<host>]\r\n", "angle": "Host: <<host>>\r\n",
        "two-ports": "Host: <host>:80\r\n", "colon-only": "Host: :\r\n", "semicolon": "Host: <host>;\r\n",
        "pipe": "Host: <host>|x\r\n", "brace": "Host: {<host>}\r\n", "star": "Host: *\r\n",
        "white-space-around": "Host: \t <host> \t\r\n", "no-space": "Host:<host>\r\n",
        "upper-case-name": "HOST: <host>\r\n", "dot-dot": "Host: a..b\r\n",
        "underscore-name": "Ho_st: <host>\r\n",
    }
    for name, lines in values.items():
        get(f"host/{name}", f"Host as {lines!r}", host=lines)
    get("host/forwarded", "X-Forwarded-Host with another host", "X-Forwarded-Host: other.example\r\n")
    get("host/missing-1.0", "HTTP/1.0 without Host", host="", start="GET /a HTTP/1.0")
    get(
        "host/two-1.0", "HTTP/1.0 with two Hosts",
        host="Host: <host>\r\nHost: other.example\r\n",
        start="GET /a HTTP/1.0",
    )


def targets() -> None:
    values = {
        "absolute": ("http://<host>/a", "/a"), "absolute-upper": ("HTTP://<host>/a", "/a"),
        "absolute-other-host": ("http://other.example/a", "/a"),
        "absolute-other-port": ("http://<host>0/a", "/a"), "absolute-no-path": ("http://<host>", "/"),
        "absolute-query": ("http://<host>?x", "/?x"), "absolute-user": ("http://user@<host>/a", "/a"),
        "absolute-other-user": ("http://<host>@other.example/a", "/a"),
        "absolute-empty-host": ("http:///a", "/a"), "absolute-one-slash": ("http:/<host>/a", "/a"),
        "absolute-https": ("https://<host>/a", "/a"), "absolute-ftp": ("ftp://<host>/a", "/a"),
        "absolute-backslash": ("http://<host>\\@other.example/a", "/a"),
        "absolute-fragment": ("http://<host>/a#b", "/a"), "absolute-websocket": ("ws://<host>/a", "/a"),
        "authority": ("<host>", "/a"), "asterisk": ("*", "*"), "empty": ("", "/a"), "relative": ("a", "/a"),
        "dot": ("./a", "/a"), "two-slashes": ("//a", "//a"),
        "slashes-host": ("//other.example/a", "//other.example/a"), "query-only": ("?x", "/?x"),
        "fragment": ("/a#b", "/a#b"), "space": ("/a b", "/a b"), "tab": ("/a\tb", "/a\tb"),
        "nul": ("/a\x00b", "/a"), "high-byte": ("/caf\xe9", "/caf\xe9"), "utf-8": ("/caf\xc3\xa9", "/caf"),
        "control": ("/a\x01", "/a"), "delete": ("/a\x7f", "/a"), "cr": ("/a\rb", "/a"),
        "percent-alone": ("/a%", "/a%"), "percent-one": ("/a%4", "/a%4"), "percent-bad": ("/a%zz", "/a%zz"),
        "percent-nul": ("/a%00", "/a%00"), "percent-slash": ("/a%2fb", "/a%2fb"),
        "percent-backslash": ("/a%5cb", "/a%5cb"), "percent-crlf": ("/a%0d%0aX:y", "/a%0d%0aX:y"),
        "percent-dots": ("/a/%2e%2e/b", "/a/%2e%2e/b"), "percent-overlong": ("/a%c0%af", "/a%c0%af"),
        "percent-unicode": ("/a%u002f", "/a%u002f"), "percent-query-bad": ("/a?b=%zz", "/a?b=%zz"),
        "percent-query-nul": ("/a?b=%00", "/a?b=%00"), "dots": ("/a/../b", "/a/../b"),
        "dots-above": ("/../../a", "/../../a"), "backslash": ("/a\\b", "/a\\b"),
        "semicolon": ("/a;b=c", "/a;b=c"), "quote": ('/a"b', '/a"b'), "angle": ("/a<b>", "/a<b>"),
        "pipe": ("/a|b", "/a|b"), "brace": ("/a{b}", "/a{b}"), "caret": ("/a^b", "/a^b"),
        "backtick": ("/a`b", "/a`b"), "two-queries": ("/a?b?c", "/a?b?c"), "brackets": ("/a[b]", "/a[b]"),
        "colon": ("/a:b", "/a:b"), "long": ("/<a*7000>", "/<a*7000>"), "too-long": ("/<a*70000>", "/a"),
    }
    for name, (sent, signed) in values.items():
        get(f"target/{name}", f"the target {sent!r}", start=f"GET {sent} HTTP/1.1", target=signed)
    get("target/options-asterisk", "OPTIONS *", start="OPTIONS * HTTP/1.1", method="OPTIONS", target="*")
    get(
        "target/absolute-no-host", "absolute form without Host", start="GET http://<host>/a HTTP/1.1", host=""
    )
    get(
        "target/absolute-1.0-no-host", "absolute form without Host in HTTP/1.0",
        start="GET http://<host>/a HTTP/1.0",
        host="",
    )
    get(
        "target/connect", "CONNECT with the authority form", start="CONNECT <host> HTTP/1.1", method="CONNECT"
    )
    get("target/connect-path", "CONNECT with a path", start="CONNECT /a HTTP/1.1", method="CONNECT")


def start_lines() -> None:
    for method in [
        "get", "Get", "TRACE", "PURGE", "FOO", "PROPFIND", "M-SEARCH", "G_T", "GET1", "G.T", "G:T", "G/T",
        "G(T", 'G"T', "G\x00T", "G\xe9T", "G,T", "@GET", "GE\tT", "<a*33>", "<a*9000>", "PRI", "HTTP/1.1",
        "PATCH", "QUERY",
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
        "method/head-with-length", "HEAD with a length of 0", "Content-Length: 0\r\n",
        start="HEAD /a HTTP/1.1",
        method="HEAD",
    )
    get(
        "method/trace-with-length", "TRACE with a length of 0", "Content-Length: 0\r\n",
        start="TRACE /a HTTP/1.1",
        method="TRACE",
    )
    for version in [
        "HTTP/0.9", "HTTP/1.2", "HTTP/1.9", "HTTP/2.0", "HTTP/3", "HTTP/1", "HTTP/1.", "HTTP/.1", "HTTP/01.1",
        "HTTP/1.01", "HTTP/1.1.1", "HTTP/11", "HTTP/1.10", "http/1.1", "Http/1.1", "HTTP 1.1", "HTTPS/1.1",
        "HTTP/1,1", "HTTP/+1.1", "HTTP/1.1a", "HTTP/a.b", "ICY/1.1", "HTTP/1.1 ", "HTTP/1.1\t", " HTTP/1.1",
        "\tHTTP/1.1", "HTTP/1.1 x", "HTTP\\1.1", "HTTP/1.\xb9", "XHTTP/1.1",
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
        "crlf": "\r\n", "two-crlf": "\r\n\r\n", "ten-crlf": "\r\n" * 10, "lf": "\n", "cr": "\r",
        "cr-crlf": "\r\r\n", "space": " ", "space-crlf": " \r\n", "nul": "\x00", "tab": "\t",
        "bom": "\xef\xbb\xbf",
    }.items():
        get(f"leading/{name}", f"{before!r} before the request", before=before)
    for name, after in {
        "crlf": "\r\n", "two-crlf": "\r\n\r\n", "lf": "\n", "letter": "X", "nul": "\x00",
        "half-request": "GET /smuggled HTTP/1.1\r\nX: ", "space": " ", "field": "X: y\r\n\r\n",
    }.items():
        get(f"behind/{name}", f"{after!r} behind a GET", after=after)
        post(f"behind/body-{name}", f"{after!r} behind a body", "Content-Length: 8\r\n", BODY + after)


def other_fields() -> None:
    for name, value in {
        "continue": "100-continue", "continue-upper": "100-Continue", "unknown": "200-ok",
        "two": "100-continue, x", "empty": "", "parameter": "100-continue; a=b",
    }.items():
        post(f"expect/{name}", f"Expect: {value!r}", f"Expect: {value}\r\nContent-Length: 8\r\n")
    post(
        "expect/twice", "Expect on two lines",
        "Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 8\r\n",
    )
    post(
        "expect/http-1.0", "Expect in HTTP/1.0", "Expect: 100-continue\r\nContent-Length: 8\r\n",
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
        "upgrade/with-body", "an upgrade of a request with a body",
        "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 8\r\n",
    )
    for name, value in {
        "host": "host", "close-twice": "close, close", "close-and-keep": "close, keep-alive",
        "unknown": "x-unknown", "empty": "", "comma": ",", "content-type": "content-type",
        "signature": "signature", "quoted": '"close"', "authorization": "close, authorization",
    }.items():
        get(f"connection/{name}", f"Connection: {value!r}", f"Connection: {value}\r\n")
    get(
        "connection/twice", "Connection on two lines that differ",
        "Connection: close\r\nConnection: keep-alive\r\n",
    )
    get("connection/proxy", "Proxy-Connection", "Proxy-Connection: close\r\n")
    for count in [60, 90, 150, 1000]:
        get(f"count/{count}", f"{count} fields more", "X-A: b\r\n" * count)
    for size in [7000, 12000, 40000, 100000]:
        get(f"size/value-{size}", f"a value of {size} bytes", f"X-A: <a*{size}>\r\n")
        get(f"size/name-{size}", f"a name of {size} bytes", f"<a*{size}>: b\r\n")
    for name in [
        "Content-Type", "Authorization", "Content-Encoding", "Date", "Accept", "If-None-Match", "Range",
        "Origin", "User-Agent",
    ]:
        get(f"twice/{name.lower()}", f"{name} twice", f"{name}: a\r\n{name}: b\r\n")
    for name in [
        "X_A", "X_", "_", "Content_Type", "X_Forwarded_For", "Countersign_Account", "Authorization_",
        "Connection_",
    ]:
        get(
            f"underscore/{name.lower().strip('_') or 'alone'}{'-end' if name.endswith('_') and name != '_' else ''}",
            f"the field name {name!r}",
            f"{name}: b\r\n",
        )


def make_requests() -> None:
    for group in (head_bytes, hosts, targets, start_lines, other_fields):
        group()
