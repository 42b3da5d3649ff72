#!/usr/bin/env python3
"""Writes the signature vectors that CountersignTestKit carries, from message-signatures/cases.json.

Run it after generate.py: `python3 Vectors/testkit.py`. Tests/TestKitTests compares both. Random cases stay out: they find
what nobody thought of in our own tests, and show an app's team nothing.
"""
import json
import pathlib

HERE = pathlib.Path(__file__).parent
TARGET = HERE.parent / "Sources/TestKit/Vectors/SignatureVector+All.swift"


def text(value):
    return json.dumps(value, ensure_ascii=False)


def vector(case):
    fields = ",\n".join(f"                HTTPField({text(name)}, {text(value)})" for name, value in case["fields"])
    secret = ", ".join(str(byte) for byte in bytes.fromhex(case["secret"]))
    return f"""        SignatureVector(
            name: {text(case["name"])}, method: {text(case["method"])}, scheme: {text(case["transport"])},
            authority: {text(case["authority"])}, target: {text(case["target"])},
            fields: [
{fields},
            ],
            body: Array({text(case["body"])}.utf8), keyID: {text(case["key_id"])},
            secret: [{secret}],
            created: {case["created"]},
            stringToSign: {text(case["string_to_sign"])}),"""


def main():
    cases = json.loads((HERE / "message-signatures/cases.json").read_text())["cases"]
    chosen = [vector(case) for case in cases if not case["name"].startswith("random ")]
    TARGET.write_text("\n".join([
        "// Written by Vectors/testkit.py. Data; its lines are as long as what they hold.", "// swift-format-ignore-file",
        "import CountersignTransport", "", "extension SignatureVector {",
        "    /// Each with a point of its own, told by its name.", "    public static let all: [SignatureVector] = [",
        *chosen, "    ]", "}", ""]))


if __name__ == "__main__":
    main()
