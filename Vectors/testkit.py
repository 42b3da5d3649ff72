#!/usr/bin/env python3
"""Writes the signature vectors that CountersignTestKit contains, from message-signatures/cases.json.

Run it after generate.py: `python3 Vectors/testkit.py`. It replaces the data at the end of SignatureVector.swift;
with `--check`, it changes nothing, and fails if the data differs. Tests/TestKitTests compares the values. The
random cases are left out: they find mistakes in this package's own tests, and state no point that a client
can be tested for.
"""
import argparse
import json
import pathlib
import re
import sys
import textwrap

HERE = pathlib.Path(__file__).parent
TARGET = HERE.parent / "Sources/TestKit/Vectors/SignatureVector.swift"
MARK = "// The data that Vectors/testkit.py derives from Vectors/message-signatures/cases.json.\n"
WIDTH = 107


def text(value):
    return json.dumps(value, ensure_ascii=False)


def wrapped(line, width):
    """The line in pieces of at most `width` characters, which end with `;` or a space if possible."""
    pieces, rest = [], line
    while len(rest) > width:
        ends = [match.end() for match in re.finditer("[; ]", rest[:width - 1])]
        pieces.append(rest[:ends[-1] if ends else width - 1])
        rest = rest[len(pieces[-1]):]
    return [piece + "\\" for piece in pieces] + [rest]


def multiline(value, indent):
    """A string literal of several lines; a backslash continues the line."""
    lines = [text(line)[1:-1].replace('\\"', '"') for line in value.split("\n")]
    lines = [line[:-1] + r"\u{20}" if line.endswith(" ") else line for line in lines]
    pieces = [piece for line in lines for piece in wrapped(line, WIDTH - indent)]
    return "\n".join(" " * indent + line for line in ['"""', *pieces, '"""'])


def field(name, value):
    line = f"                HeaderField({text(name)}, value: {text(value)}),"
    if len(line) <= WIDTH:
        return line
    start, line = line.split("(", 1)
    if len(line) + 20 <= WIDTH:
        return f"{start}(\n{' ' * 20}{line}"
    return f"{start}(\n{' ' * 20}{text(name)},\n{' ' * 20}value:\n{multiline(value, 24)}\n{' ' * 16}),"


def vector(case):
    fields = "\n".join(field(name, value) for name, value in case["fields"])
    secret = textwrap.fill(", ".join(str(byte) for byte in bytes.fromhex(case["secret"])) + ",", 110,
                           initial_indent=" " * 16, subsequent_indent=" " * 16)
    return f"""        SignatureVector(
            name: {text(case["name"])}, method: {text(case["method"])}, scheme: {text(case["transport"])},
            authority: {text(case["authority"])}, target: {text(case["target"])},
            fields: [
{fields}
            ],
            body: Array({text(case["body"])}.utf8), keyID: {text(case["key_id"])},
            secret: [
{secret}
            ],
            created: {case["created"]},
            stringToSign:
{multiline(case["string_to_sign"], 16)}
        ),"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare the data with the file's")
    options = parser.parse_args()
    cases = json.loads((HERE / "message-signatures/cases.json").read_text(encoding="utf-8"))["cases"]
    chosen = [vector(case) for case in cases if not case["name"].startswith("random ")]
    before = TARGET.read_text(encoding="utf-8")
    declaration, mark, _ = before.partition(MARK)
    if not mark:
        sys.exit(f"testkit: {TARGET.name} has no line '{MARK.strip()}'")
    after = declaration + mark + "\n".join([
        "import CountersignTransport", "", "extension SignatureVector {",
        "    /// All vectors; each one's name states the point that it tests.",
        "    public static let all: [SignatureVector] = [", *chosen, "    ]", "}", ""])
    if options.check:
        if after != before:
            sys.exit(f"testkit: {TARGET.name} is not the output of Vectors/testkit.py")
        return
    TARGET.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
