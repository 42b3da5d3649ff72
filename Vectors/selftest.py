#!/usr/bin/env python3
"""Writes the signed requests that `countersign selftest` contains, from */cases.json.

Run it after generate.py: `python3 Vectors/selftest.py`. With `--check`, it changes nothing, and fails if the
file differs. Tests/LabTests verifies each request.
"""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
TARGET = HERE.parent / "Tools/Lab/SelfTest/Checks/PublishedVectors.swift"
FORM = "application/x-www-form-urlencoded"
MOST = 8


def wire(method, target, authority, fields, body):
    lines = [f"{method} {target} HTTP/1.1", f"Host: {authority}"] + [f"{name}: {value}" for name, value in fields]
    if body:
        lines.append(f"Content-Length: {len(body.encode())}")
    return "\r\n".join(lines) + "\r\n\r\n" + body


def message_signatures(case):
    return case["key_id"], bytes.fromhex(case["secret"]), wire(
        case["method"], case["target"], case["authority"], case["fields"], case["body"])


def sigv4(case):
    return case["key_id"], case["secret"].encode(), wire(
        case["method"], case["target"], case["authority"], case["fields"], case["body"])


def form_md5(case):
    return dict(case["parameters"])["app_id"], case["private_key"].encode(), wire(
        "POST", "/api", "api.example.com", [("Content-Type", FORM)], case["form"])


def parameters(case):
    given = dict(case["parameters"])
    return given.get("auth_key") or given["auth_client_id"], case["secret"].encode(), wire(
        case["method"], f"{case['path']}?{case['form']}", "api.example.com", [], case["body"])


def header(case):
    authority, _, rest = case["url"].removeprefix("https://").partition("/")
    fields = [("X-Auth-Version", "4"), ("X-Auth-Client-ID", case["key_id"]),
              ("X-Auth-Timestamp", str(case["timestamp"])), ("X-Auth-Signature", case["signature"])]
    return case["key_id"], case["secret"].encode(), wire(case["method"], "/" + rest, authority, fields, case["body"])


SCHEMES = {"message-signatures": ("messageSignatures", message_signatures), "sigv4": ("sigV4", sigv4),
           "form-md5": ("formMD5", form_md5), "auth-v1": ("authV1", parameters), "auth-v2": ("authV2", parameters),
           "auth-v4": ("authV4", header)}


def text(value):
    return json.dumps(value, ensure_ascii=False)


def is_plain(folder, case):
    """Over TLS, with a shared secret, in the scheme's own format."""
    return not (case["name"].startswith("random ") or case.get("transport") == "http"
                or case.get("spelling", "standard") != "standard" or (folder == "sigv4" and "X-Amz-Signature" in case["target"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare the output with the file")
    options = parser.parse_args()
    vectors = []
    for folder, (name, made) in SCHEMES.items():
        cases = [case for case in json.loads((HERE / folder / "cases.json").read_text())["cases"] if is_plain(folder, case)]
        for case in cases[:MOST]:
            key_id, secret, request = made(case)
            vectors.append(f"""        PublishedVector(
            scheme: .{name}, name: {text(case["name"])}, keyID: {text(key_id)},
            secret: [{", ".join(map(str, secret))}],
            text: {text(request)}),""")
    output = "\n".join([
        "// Written by Vectors/selftest.py. Data; its lines are as long as what they hold.", "// swift-format-ignore-file",
        "import CountersignSchemes", "",
        "extension PublishedVector {", "    /// Vectors of each scheme, in the scheme's own format.",
        "    package static let all: [PublishedVector] = [", *vectors, "    ]", "}", ""])
    if options.check:
        if output != TARGET.read_text(encoding="utf-8"):
            sys.exit(f"selftest: {TARGET.name} is not the output of Vectors/selftest.py")
        return
    TARGET.write_text(output, encoding="utf-8")


if __name__ == "__main__":
    main()
