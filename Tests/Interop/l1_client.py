#!/usr/bin/env python3
"""A form-md5 (L1) client, as teams wrote them: hashlib and the standard library, nothing else.

Usage: l1_client.py URL APP_ID PRIVATE_KEY PLATFORM VERSION [--ca FILE] [--get] [NAME=VALUE]...
Prints the answer; exit 1 where it holds an `err`, with the page that such a client then shows on stderr.
"""

import hashlib
import json
import secrets
import ssl
import string
import sys
import time
import urllib.parse
import urllib.request

PAGES = {-100: "login page", -99: "update page"}


def signed(business: dict[str, str], app_id: str, private_key: str, platform: str, version: str,
           now: float | None = None, rand: str | None = None) -> dict[str, str]:
    """All parameters to send. `sign` is the MD5 of all of them and the private key, sorted, joined, not escaped."""
    letters = string.ascii_letters + string.digits
    parameters = business | {
        "app_id": app_id,
        "plat": platform,
        "ver": version,
        "rand": rand or "".join(secrets.choice(letters) for _ in range(16)),
        "timestamp": time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime(now)),
    }
    text = "&".join(f"{name}={value}" for name, value in sorted((parameters | {"private_key": private_key}).items()))
    return parameters | {"sign": hashlib.md5(text.encode()).hexdigest()}


def call(url: str, parameters: dict[str, str], ca: str | None = None, method: str = "POST") -> tuple[int, bytes]:
    form = urllib.parse.urlencode(parameters)
    request = urllib.request.Request(f"{url}?{form}") if method == "GET" else urllib.request.Request(url, form.encode())
    context = ssl.create_default_context(cafile=ca) if ca else None
    with urllib.request.urlopen(request, timeout=60, context=context) as answer:
        return answer.status, answer.read()


def error(body: bytes) -> dict | None:
    """The `err` of an answer, if it has one."""
    answer = json.loads(body)
    return answer.get("err") if isinstance(answer, dict) else None


def main(arguments: list[str]) -> int:
    method = "GET" if "--get" in arguments else "POST"
    arguments = [argument for argument in arguments if argument != "--get"]
    ca = arguments.pop(arguments.index("--ca") + 1) if "--ca" in arguments else None
    url, app_id, private_key, platform, version, *business = [word for word in arguments if word != "--ca"]
    pairs = dict(pair.split("=", 1) for pair in business)
    _, body = call(url, signed(pairs, app_id, private_key, platform, version), ca, method)
    print(body.decode())
    if (err := error(body)) is None:
        return 0
    print(PAGES.get(err["code"], f"error {err['code']}: {err['msg']}"), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
