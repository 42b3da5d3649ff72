"""Answers of a backend that can be read in more than one way, or that are followed by bytes of nobody's."""

from case import TE

answers: list[dict] = []


def answer(name: str, probes: str, data: str, outcome: str, method: str = "GET") -> None:
    """`outcome`: what the client must see: `passed`, `refused` (502), `cut` (a part, and the end of its
    connection), or `either`. Whatever it is, no other request may get a byte of it; bytes that belong to
    nobody say POISON."""
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
        "continue", "100 before the answer", "HTTP/1.1 100 Continue\r\n\r\n" + ok + length + "\r\ngood",
        "passed",
    )
    answer(
        "early-hints", "103 before the answer",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok + length + "\r\ngood", "passed",
    )
    answer("second-answer", "a second answer behind the first", ok + length + "\r\ngood" + poison, "passed")
    answer(
        "second-answer-chunked", "a second answer behind a chunked one",
        ok + TE + "\r\n4\r\ngood\r\n0\r\n\r\n" + poison,
        "passed",
    )
    answer(
        "head-with-body", "HEAD answered with a body",
        ok + "Content-Length: 6\r\n\r\nPOISON",
        "passed", "HEAD",
    )
    answer(
        "head-with-answer", "HEAD answered with a body that is an answer",
        ok + f"Content-Length: {len(poison)}\r\n\r\n" + poison,
        "passed", "HEAD",
    )
    answer(
        "head-chunked", "HEAD answered in chunks", ok + TE + "\r\n6\r\nPOISON\r\n0\r\n\r\n", "passed", "HEAD"
    )
    answer(
        "204-with-body", "204 with a length and a body",
        "HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\nPOISON", "passed",
    )
    answer(
        "204-with-answer", "204 with another answer behind", "HTTP/1.1 204 No Content\r\n\r\n" + poison,
        "passed",
    )
    answer(
        "204-chunked", "204 in chunks", "HTTP/1.1 204 No Content\r\n" + TE + "\r\n6\r\nPOISON\r\n0\r\n\r\n",
        "either",
    )
    answer(
        "304-with-body", "304 with a length and a body",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\nPOISON", "passed",
    )
    answer(
        "304-with-answer", "304 with another answer behind", "HTTP/1.1 304 Not Modified\r\n\r\n" + poison,
        "passed",
    )
    answer(
        "205-with-body", "205 with a body", "HTTP/1.1 205 Reset Content\r\nContent-Length: 4\r\n\r\ngood",
        "passed",
    )
    answer(
        "100-with-body", "100 with a length and a body",
        "HTTP/1.1 100 Continue\r\nContent-Length: 6\r\n\r\nPOISON", "refused",
    )
    answer(
        "100-with-chunks", "100 in chunks", "HTTP/1.1 100 Continue\r\n" + TE + "\r\n6\r\nPOISON\r\n0\r\n\r\n",
        "refused",
    )
    answer("100-only", "100 and nothing behind it", "HTTP/1.1 100 Continue\r\n\r\n", "refused")
    answer(
        "101", "a switch of protocols that nobody asked for",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nPOISON", "refused",
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
        "http-2": "HTTP/2.0 200 OK\r\n" + length + "\r\ngood", "http-0.9": "good\r\n\r\n",
        "status-two-digits": "HTTP/1.1 20 OK\r\n" + length + "\r\ngood",
        "status-four-digits": "HTTP/1.1 2000 OK\r\n" + length + "\r\ngood",
        "status-99": "HTTP/1.1 099 OK\r\n" + length + "\r\ngood",
        "status-600": "HTTP/1.1 600 OK\r\n" + length + "\r\ngood",
        "status-letters": "HTTP/1.1 2OO OK\r\n" + length + "\r\ngood",
        "status-plus": "HTTP/1.1 +20 OK\r\n" + length + "\r\ngood",
        "leading-crlf": "\r\n" + ok + length + "\r\ngood", "leading-space": " " + ok + length + "\r\ngood",
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
        "until-close-1.0", "an answer of HTTP/1.0 that ends with its connection",
        "HTTP/1.0 200 OK\r\n\r\ngood", "passed",
    )
    answer("underscore", "a field name with an underscore", ok + "X_A: b\r\n" + length + "\r\ngood", "passed")
    answer("nothing", "no answer at all", "", "refused")
