"""Prints how many tests passed, failed and were skipped: of a JUnit file, or of one step by its exit status.

Usage: tally.py FILE STATUS [EARLIER]. The first line has the three numbers, and each further line names a failed test
with the first line of its message. A step that failed counts as a failure even if no test of its file did, and so
does one whose file is broken off; a step that left no file, or one without tests, counts as one test. EARLIER is the
JUnit file of a run before, of which a part ran once more: of its tests those count that FILE does not have.

tally.py --files FILE prints the Python files below Tests that have a failed test, on one line; nothing where one of
them cannot be told.
"""

import pathlib
import sys
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(__file__).resolve().parents[2]


def is_broken_off(path: pathlib.Path) -> bool:
    """Whether it is a file that its writer did not finish."""
    try:
        return path.is_file() and ET.parse(path) is None
    except ET.ParseError:
        return True


def cases(path: pathlib.Path) -> list[ET.Element]:
    """The tests of a JUnit file; none if it is absent or broken off."""
    return list(ET.parse(path).iter("testcase")) if path.is_file() and not is_broken_off(path) else []


def name(case: ET.Element) -> tuple[str, str]:
    return case.get("classname", ""), case.get("name", "")


def flaw(case: ET.Element) -> ET.Element | None:
    failure = case.find("failure")
    return failure if failure is not None else case.find("error")


def file(case: ET.Element) -> str:
    """The test's file, from the name of its module, which the name of a class may follow; empty if there is none."""
    parts = name(case)[0].split(".")
    for count in range(len(parts), 0, -1):
        path = "/".join(parts[:count]) + ".py"
        if (ROOT / path).is_file():
            return path
    return ""


def tally(path: pathlib.Path, status: int, earlier: list[ET.Element]) -> None:
    found = cases(path)
    names = {name(case) for case in found}
    counted = found + [case for case in earlier if name(case) not in names]
    failures = []
    for case in counted:
        if (why := flaw(case)) is not None:
            message = (why.get("message") or why.text or "").strip().split("\n")[0]
            failures.append(f"{' '.join(name(case))}: {message}"[:300])
    failed = len(failures)
    skipped = sum(1 for case in counted if case.find("skipped") is not None)
    passed = len(counted) - failed - skipped
    if (status or is_broken_off(path)) and not failed:
        failed = 1
    elif not found and not status:
        passed += 1
    print(passed, failed, skipped)
    for failure in failures:
        print(failure)


if sys.argv[1] == "--files":
    files = {file(case) for case in cases(pathlib.Path(sys.argv[2])) if flaw(case) is not None}
    print("" if "" in files else " ".join(sorted(files)))
else:
    tally(pathlib.Path(sys.argv[1]), int(sys.argv[2]), [case for path in sys.argv[3:] for case in cases(pathlib.Path(path))])
