#!/usr/bin/env python3
"""Measures other verifiers on the requests that `countersign bench` judged in the same run: botocore for
sigv4, http-message-signatures for message-signatures, pusher for auth-v1. All are Python libraries, so the
ratio reflects the language, too; it shows what a team uses today. None of them detects replays, and
pusher's does not parse requests.

Usage: peers.py FILE, the output of `countersign bench --json`. script/bench calls it.
"""

import base64
import datetime
import hashlib
import json
import statistics
import sys
import time
import urllib.parse

import botocore.auth
import pusher.http
import pusher.signature
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, algorithms

MOMENT = datetime.datetime.fromtimestamp(1_800_000_000, datetime.timezone.utc)
ROUNDS, CALLS = 20, 50


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Sample:
    """A request as the gate judged it, and the key that signed it."""

    def __init__(self, sample: dict):
        head, self.body = decode(sample["request"]).split(b"\r\n\r\n", 1)
        line, *fields = head.decode().split("\r\n")
        self.method, self.target, _ = line.split(" ")
        self.headers = dict(field.split(": ", 1) for field in fields)
        self.url = f"https://{self.headers['Host']}{self.target}"
        self.key_id, self.secret = sample["key_id"], decode(sample["secret"])


def message_signatures(sample: Sample):
    class Key(HTTPSignatureKeyResolver):
        def resolve_public_key(self, key_id):
            assert key_id == sample.key_id
            return sample.secret

        resolve_private_key = resolve_public_key

    class Verifier(HTTPMessageVerifier):
        # The sample has its own signing time.
        def validate_created_and_expires(self, *_, **__):
            pass

    verifier = Verifier(signature_algorithm=algorithms.HMAC_SHA256, key_resolver=Key())

    def verify() -> None:
        verifier.verify(sample, max_age=datetime.timedelta(days=36_500), expect_tag="countersign")
        digest = base64.b64encode(hashlib.sha256(sample.body).digest()).decode()
        assert sample.headers["Content-Digest"] == f"sha-256=:{digest}:"

    return verify


def sigv4(sample: Sample):
    given = sample.headers["Authorization"]
    scope = given.split("Credential=")[1].split(",")[0].split("/")
    names = given.split("SignedHeaders=")[1].split(",")[0].split(";")
    signed = {name: value for name, value in sample.headers.items() if name.lower() in names and name != "Host"}
    # botocore signs and does not verify: a server that verifies with it signs again and compares.
    credentials = Credentials(sample.key_id, sample.secret.decode())
    botocore.auth.get_current_datetime = lambda: MOMENT

    def verify() -> None:
        request = AWSRequest(method=sample.method, url=sample.url, data=sample.body, headers=signed)
        botocore.auth.SigV4Auth(credentials, scope[3], scope[2]).add_auth(request)
        assert request.headers["Authorization"].split("Signature=")[1] == given.split("Signature=")[1]

    return verify


def auth_v1(sample: Sample):
    parts = urllib.parse.urlsplit(sample.url)
    secret = sample.secret.decode()

    def verify() -> None:
        parameters = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        given = parameters.pop("auth_signature")
        if "body_md5" in parameters:
            assert hashlib.md5(sample.body).hexdigest() == parameters["body_md5"]
        query = pusher.http.make_query_string({name.lower(): value for name, value in parameters.items()})
        text = "\n".join([sample.method, parts.path, query])
        assert pusher.signature.verify(secret, text, given)

    return verify


PEERS = {"message-signatures": ("http-message-signatures", message_signatures), "sigv4": ("botocore", sigv4),
         "auth-v1": ("pusher", auth_v1)}


def measure(verify) -> float:
    """Nanoseconds of CPU for one call: the median of the rounds."""
    verify()
    times = []
    for _ in range(ROUNDS):
        start = time.thread_time_ns()
        for _ in range(CALLS):
            verify()
        times.append((time.thread_time_ns() - start) / CALLS)
    return statistics.median(times)


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        figures = json.load(file)["figures"]
    print(f"{'SCHEME':20}{'OURS ns':>10}{'PEER ns':>12}{'RATIO':>8}  PEER")
    for figure in figures:
        if figure["sample"] is None or figure["scheme"] not in PEERS:
            continue
        name, make = PEERS[figure["scheme"]]
        peer, ours = measure(make(Sample(figure["sample"]))), figure["nanoseconds"]
        print(f"{figure['scheme']:20}{ours:>10}{peer:>12.0f}{peer / ours:>8.0f}  {name}")


if __name__ == "__main__":
    main()
