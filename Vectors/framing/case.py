"""How a request is written down: what the lists in bodies.py and heads.py are made with."""

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
        "POST", "/order",
        BODY,
    )


def chunks(name: str, probes: str, wire: str) -> None:
    post(name, probes, TE, wire)
