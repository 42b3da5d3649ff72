#!/usr/bin/env python3
"""Makes cases.json: texts, and the one spelling that the rule for account names gives them, by Python's unicodedata.

The rule is stated here a second time, from docs/protocol.md and with another implementation of Unicode, so that the two
check each other. Needs a Python whose data are of the version that the rule names.
"""
import json
import pathlib
import random
import unicodedata

assert unicodedata.unidata_version == "14.0.0", "Unicode 14.0 is the rule's version; this Python has another"

# Default_Ignorable_Code_Point without category Cf, which `unicodedata` does not tell. Source: DerivedCoreProperties.txt.
INVISIBLE = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x3164, 0xFFA0}
INVISIBLE |= set(range(0xFE00, 0xFE10)) | set(range(0xE0100, 0xE01F0))


def refused(letter):
    category = unicodedata.category(letter)
    if letter == " ":
        return False
    return category in ("Cc", "Cf", "Cn", "Co", "Cs", "Zs", "Zl", "Zp") or ord(letter) in INVISIBLE


def lower(text):
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def spelling(text):
    """Nil for what is refused."""
    if not text or len(text.encode()) > 512 or any(refused(c) for c in text):
        return None
    normal = unicodedata.normalize("NFC", lower(unicodedata.normalize("NFC", text)))
    if len(normal.encode()) > 128 or normal != normal.strip(" ") or "  " in normal:
        return None
    return normal


def texts():
    yield from ("alice", "Alice", "ALICE@Example.COM", "a b", " a", "a ", "a  b", "", "a\0b", "a\tb", "a\nb", "\x7f")
    # One letter, two normal forms, in either case; the last four compose in lower case only.
    yield from ("\u00c5", "A\u030a", "\u212b", "a\u030a", "\u00e5", "\u212a", "J\u030c", "H\u0331", "T\u0308", "Y\u030a")
    yield from ("\u1e9b\u0323", "\u0344", "a\u0315\u0300\u05ae\u0300b", "\u1100\u1161\u11a8", "\uac01", "\ufb1d", "\u2126")
    yield from ("密码", "Ωmega", "ß", "é😀", "I\u0307", "İ", "ﬁ", "\u0958", "a\u0338\u0323", "\U0001d15e")
    yield from ("a" * 128, "a" * 129, "é" * 64, "é" * 65, "e\u0301" * 64, "e\u0301" * 171)
    # One of each kind that is refused, and the youngest that is not.
    yield from ("a\u00adb", "a\u200bb", "a\u200db", "a\u202eb", "\ufeffa", "a\u034fb", "a\ufe0fb", "a\u3164b", "\ue000")
    yield from ("\ufffe", "\U0001ffff", "\u0378", "\U0001fa7c", "\U0001fae8", "\U00011f00", "\U000e0041", "a\u00a0b")
    yield from ("a\u2028b", "a\u3000b", "\u0085", "\U00010ffd", "\U0001face", "\u0870")
    rng = random.Random(9807)
    blocks = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x58F), (0x590, 0x6FF), (0x900, 0xDFF), (0x1100, 0x11FF)]
    blocks += [(0x1E00, 0x1FFF), (0x2100, 0x21FF), (0x3040, 0x30FF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0x1D150, 0x1D1FF)]
    for _ in range(400):
        low, high = rng.choice(blocks)
        letters = [rng.choice((rng.randint(low, high), rng.randint(0x300, 0x345), rng.randint(0x41, 0x7A))) for _ in range(6)]
        yield "".join(chr(letter) for letter in letters)


def composing():
    """Every letter that decomposes, in both forms: one account each."""
    for number in range(0xC0, 0x30000):
        letter = chr(number)
        if 0xD800 <= number < 0xE000 or refused(letter):
            continue
        if 0xAC00 < number < 0xD7A3 and number % 97:
            continue
        apart = unicodedata.normalize("NFD", letter)
        if apart != letter:
            yield letter
            yield apart


cases = [{"text": text, "spelling": spelling(text)} for text in [*texts(), *composing()]]
path = pathlib.Path(__file__).parent / "cases.json"
# ASCII only: some of these texts would be altered by what shows or stores them.
path.write_text('{"cases":[\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]}\n", encoding="ascii")

# Which characters may stand in a name at all, as ranges of scalars: [first, last].
ranges = []
for number in range(0x110000):
    if 0xD800 <= number < 0xE000 or refused(chr(number)):
        continue
    if ranges and ranges[-1][1] == number - 1:
        ranges[-1][1] = number
    else:
        ranges.append([number, number])
rows = [", ".join(f"[{first}, {last}]" for first, last in ranges[at:at + 8]) for at in range(0, len(ranges), 8)]
path.with_name("characters.json").write_text('{"cases":[\n' + ",\n".join(rows) + "\n]}\n", encoding="ascii")
