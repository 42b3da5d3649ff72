"""Requests whose bodies, or the fields that say where they end, can be read in more than one way."""

from case import BODY, CHUNKED, SMUGGLED, TE, chunks, get, post


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
        "leading-zeros": "0008", "eighteen-digits": "0" * 17 + "8", "nineteen-digits": "0" * 18 + "8",
        "forty-digits": "0" * 39 + "8", "plus": "+8", "minus": "-8", "minus-zero": "-0", "hex": "0x8",
        "octal": "010", "decimal-point": "8.0", "exponent": "8e0", "empty": "", "spaces-only": "   ",
        "letters": "eight", "trailing-letter": "8a", "leading-letter": "a8", "two-numbers": "8 8",
        "list-equal": "8, 8", "list-different": "8, 0", "list-no-space": "8,8", "list-trailing-comma": "8,",
        "list-leading-comma": ",8", "semicolon": "8;", "quoted": '"8"', "underscore": "0_8",
        "apostrophe": "0'8", "over-32-bits": "4294967304", "over-63-bits": "9223372036854775816",
        "over-64-bits": "18446744073709551624", "over-128-bits": "340282366920938463463374607431768211464",
        "tab-before": "\t8", "tab-after": "8\t", "vertical-tab-before": "\x0b8",
        "vertical-tab-after": "8\x0b", "form-feed-before": "\x0c8", "nul-before": "\x008",
        "nul-after": "8\x00", "cr-after": "8\r", "nbsp-before": "\xa08", "nel-after": "8\x85",
        "fullwidth": "\xef\xbc\x98", "parenthesis": "(8)", "comment": "8 (eight)", "at-zero": "0",
    }
    for name, value in values.items():
        post(f"length/{name}", f"Content-Length: {value!r}", f"Content-Length: {value}\r\n")
    post(
        "length/zero-with-request-behind", "a length of 0, a request where the body would be",
        "Content-Length: 0\r\n",
        SMUGGLED,
    )
    post("length/two-equal", "two equal lengths", "Content-Length: 8\r\nContent-Length: 8\r\n")
    post(
        "length/two-different", "two lengths, the first too short",
        "Content-Length: 0\r\nContent-Length: 8\r\n",
    )
    post(
        "length/two-different-long-first", "two lengths, the second too short",
        "Content-Length: 8\r\nContent-Length: 0\r\n",
    )
    post(
        "length/two-cases", "two lengths, named in different case",
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
        "length/name-with-underscore", "a length with an underscore for its hyphen, and a good one",
        "Content_Length: 0\r\nContent-Length: 8\r\n",
    )
    post(
        "length/name-with-space", "a length with a space for its hyphen",
        "Content Length: 0\r\nContent-Length: 8\r\n",
    )
    post(
        "length/name-behind-space", "a length whose line begins with a space",
        "X: y\r\n Content-Length: 0\r\nContent-Length: 8\r\n",
    )
    get(
        "length/get-with-body", "a GET with a length that is the request behind",
        f"Content-Length: {len(SMUGGLED) + 15}\r\n",
        after="",
    )
    get("length/get-zero", "a GET with a length of 0", "Content-Length: 0\r\n")


def transfer_encodings() -> None:
    values = {
        "upper-case": "CHUNKED", "mixed-case": "Chunked", "xchunked": "xchunked", "chunkedx": "chunkedx",
        "chunked-semicolon": "chunked;", "chunked-parameter": "chunked;q=1",
        "chunked-space-semicolon": "chunked ; a=b", "quoted": '"chunked"', "identity": "identity",
        "identity-chunked": "identity, chunked", "chunked-identity": "chunked, identity",
        "gzip-chunked": "gzip, chunked", "chunked-gzip": "chunked, gzip",
        "chunked-chunked": "chunked, chunked", "leading-comma": ",chunked", "trailing-comma": "chunked,",
        "empty": "", "spaces": "  ", "space-inside": "chun ked", "tab-before": "\tchunked",
        "tab-after": "chunked\t", "vertical-tab-before": "\x0bchunked", "vertical-tab-after": "chunked\x0b",
        "form-feed": "\x0cchunked", "nul-before": "\x00chunked", "nul-after": "chunked\x00",
        "backspace": "\x08chunked", "cr-inside": "chunk\red", "nbsp-before": "\xa0chunked",
        "nbsp-after": "chunked\xa0", "long-s": "chun\xc5\xbfed", "kelvin": "chun\xe2\x84\xaaed",
        "x-gzip": "x-gzip", "deflate": "deflate", "compress": "compress", "unknown": "cow",
        "unknown-chunked": "cow, chunked", "chunked-slash": "chunked/", "escaped": "chunk%65d",
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
        "transfer/length-of-chunks", "chunked, and the length of the coded body",
        TE + f"Content-Length: {len(CHUNKED)}\r\n",
        CHUNKED,
    )
    post(
        "transfer/length-smuggles", "chunked with a length that covers a request behind",
        f"Content-Length: {5 + len(SMUGGLED)}\r\n" + TE,
        "0\r\n\r\n" + SMUGGLED,
    )
    post("transfer/length-zero", "chunked and a length of 0", "Content-Length: 0\r\n" + TE, CHUNKED)
    post(
        "transfer/length-bad", "chunked and a length that is no number", "Content-Length: x\r\n" + TE, CHUNKED
    )
    post("transfer/two", "chunked on two lines", TE + TE, CHUNKED)
    post(
        "transfer/two-identity-last", "chunked, then identity on a line of its own",
        TE + "Transfer-Encoding: identity\r\n",
        CHUNKED,
    )
    post(
        "transfer/two-identity-first", "identity, then chunked on a line of its own",
        "Transfer-Encoding: identity\r\n" + TE,
        CHUNKED,
    )
    post(
        "transfer/two-unknown-last", "chunked, then an unknown coding on a line of its own",
        TE + "Transfer-Encoding: cow\r\n",
        CHUNKED,
    )
    post(
        "transfer/two-empty-last", "chunked, then an empty line of its own",
        TE + "Transfer-Encoding:\r\n",
        CHUNKED,
    )
    post("transfer/folded", "chunked on a folded line", "Transfer-Encoding:\r\n chunked\r\n", CHUNKED)
    post(
        "transfer/folded-behind", "a line folded behind chunked",
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
        "transfer/underscore", "an underscore for the hyphen, beside a length",
        "Transfer_Encoding: chunked\r\nContent-Length: 8\r\n",
    )
    post("transfer/http-1.0", "chunked in HTTP/1.0", TE, CHUNKED, version="HTTP/1.0")
    post(
        "transfer/http-1.0-length", "chunked and a length in HTTP/1.0",
        TE + "Content-Length: 8\r\n",
        CHUNKED,
        version="HTTP/1.0",
    )
    post(
        "transfer/http-1.0-keep-alive", "chunked in HTTP/1.0 that stays open",
        TE + "Connection: keep-alive\r\n",
        CHUNKED,
        version="HTTP/1.0",
    )
    post(
        "transfer/named-by-connection", "chunked, which Connection names",
        TE + "Connection: close, transfer-encoding\r\n",
        CHUNKED,
    )
    post(
        "transfer/length-named-by-connection", "a length, which Connection names",
        "Content-Length: 8\r\nConnection: content-length\r\n",
    )
    post("transfer/te-field", "TE: chunked beside a length", "TE: chunked\r\nContent-Length: 8\r\n")
    post(
        "transfer/lf-in-value", "chunked behind a bare LF in another field",
        "X: y\nTransfer-Encoding: chunked\r\nContent-Length: 8\r\n",
    )
    post(
        "transfer/cr-in-value", "chunked behind a bare CR in another field",
        "X: y\rTransfer-Encoding: chunked\r\nContent-Length: 8\r\n",
    )
    get("transfer/get-chunked-empty", "a GET with an empty chunked body", TE, after="0\r\n\r\n")


def chunk_sizes() -> None:
    sizes = {
        "plus": "+8", "minus": "-8", "hex-prefix": "0x8", "hex-prefix-upper": "0X8", "space-before": " 8",
        "space-after": "8 ", "tab-before": "\t8", "tab-after": "8\t", "many-spaces-after": "8     ",
        "empty": "", "letter-g": "g", "letter-behind": "8g", "letter-before": "g8", "point": "8.0",
        "exponent": "8e0", "zeros": "00000008", "fifteen-digits": "0" * 14 + "8",
        "sixteen-digits": "0" * 15 + "8", "seventeen-digits": "0" * 16 + "8", "forty-digits": "0" * 39 + "8",
        "over-32-bits": "100000008", "over-64-bits": "10000000000000008", "all-ones": "ffffffffffffffff",
        "over-63-bits": "8000000000000008", "sixty-bits": "fffffffffffffff", "underscore": "0_8",
        "quoted": '"8"', "comma": "8,", "vertical-tab": "8\x0b", "nul": "8\x00", "nul-before": "\x008",
        "cr": "8\r", "high-byte": "8\xff", "fullwidth": "\xef\xbc\x98",
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
        "name": ";a", "pair": ";a=b", "quoted": ';a="b c"', "quoted-escape": ';a="b\\"c"', "two": ";a=b;c=d",
        "empty": ";", "space-before": " ;a=b", "space-after": "; a=b", "tab": ";\ta", "equals-only": ";=",
        "no-value": ";a=", "spaces-in-value": ";a=b c", "unclosed-quote": ';a="b', "control": ";a=\x01",
        "nul": ";a=\x00", "delete": ";a=\x7f", "high-byte": ";a=\xff", "lf": ";a\nb", "cr": ";a\rb",
        "one-kilobyte": ";<a*1000>", "five-kilobytes": ";<a*5000>", "seventy-kilobytes": ";<a*70000>",
        "comma": ",a", "colon": ":a", "equals": "=a", "slash": ";a/b", "at": ";a=b@c", "semicolons": ";;;",
    }
    for name, extension in extensions.items():
        chunks(
            f"chunk-extension/{name}",
            f"a chunk extension {extension!r}",
            f"8{extension}\r\n{BODY}\r\n0\r\n\r\n",
        )
    chunks("chunk-extension/last", "an extension of the last chunk", f"8\r\n{BODY}\r\n0;a=b\r\n\r\n")
    chunks(
        "chunk-extension/last-lf", "a bare LF in an extension of the last chunk",
        f"8\r\n{BODY}\r\n0;\n\r\n\r\n",
    )
    chunks(
        "chunk-extension/newline-smuggles", "an extension with a bare LF, and a size behind it",
        f"8;\n{BODY}\r\n0\r\n\r\n",
    )
    ends = {
        "size-lf": f"8\n{BODY}\r\n0\r\n\r\n", "size-cr": f"8\r{BODY}\r\n0\r\n\r\n",
        "data-lf": f"8\r\n{BODY}\n0\r\n\r\n", "data-cr": f"8\r\n{BODY}\r0\r\n\r\n",
        "data-none": f"8\r\n{BODY}0\r\n\r\n", "data-lf-cr": f"8\r\n{BODY}\n\r0\r\n\r\n",
        "data-two": f"8\r\n{BODY}\r\n\r\n0\r\n\r\n", "data-other": f"8\r\n{BODY}XX0\r\n\r\n",
        "data-space": f"8\r\n{BODY} \r\n0\r\n\r\n", "last-lf": f"8\r\n{BODY}\r\n0\n\r\n",
        "last-cr": f"8\r\n{BODY}\r\n0\r\r\n", "end-lf": f"8\r\n{BODY}\r\n0\r\n\n",
        "end-cr-only": f"8\r\n{BODY}\r\n0\r\n\r", "all-lf": f"8\n{BODY}\n0\n\n",
        "no-end": f"8\r\n{BODY}\r\n0\r\n", "no-last": f"8\r\n{BODY}\r\n",
        "size-cr-cr-lf": f"8\r\r\n{BODY}\r\n0\r\n\r\n", "begins-with-crlf": f"\r\n8\r\n{BODY}\r\n0\r\n\r\n",
        "data-for-size": f"{BODY}\r\n0\r\n\r\n",
    }
    for name, wire in ends.items():
        chunks(f"chunk-end/{name}", f"chunks {wire!r}", wire)
    trailers = {
        "two": "A: b\r\nC: d\r\n", "empty-value": "A:\r\n", "no-colon": "A\r\n",
        "no-colon-long": "<a*300>\r\n", "request-line": "GET /smuggled HTTP/1.1\r\n",
        "space-before-colon": "A : b\r\n", "tab-before-colon": "A\t: b\r\n", "no-name": ": b\r\n",
        "folded": "A: b\r\n c\r\n", "begins-with-space": " A: b\r\n", "lf": "A: b\n", "cr": "A: b\rC: d\r\n",
        "nul": "A: b\x00\r\n", "nul-in-name": "A\x00: b\r\n", "control": "A: \x01\r\n",
        "high-byte-in-name": "A\xff: b\r\n", "parenthesis-in-name": "A(: b\r\n",
        "space-in-name": "A B: c\r\n", "content-length": "Content-Length: 5\r\n",
        "transfer-encoding": "Transfer-Encoding: chunked\r\n", "host": "Host: other.example\r\n",
        "underscore": "A_B: c\r\n", "many": "A: b\r\n" * 64, "too-many": "A: b\r\n" * 1000,
        "long": "A: <a*6000>\r\n", "too-long": "A: <a*70000>\r\n", "lf-only-line": "\n",
        "authorization": "Authorization: x\r\n",
    }
    for name, lines in trailers.items():
        chunks(f"trailer/{name}", f"trailers {lines[:40]!r}", f"8\r\n{BODY}\r\n0\r\n{lines}\r\n")


def make_requests() -> None:
    for group in (controls, lengths, transfer_encodings, chunk_sizes, chunk_lines):
        group()
