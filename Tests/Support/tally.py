"""Prints how many tests passed, failed and were skipped: of a JUnit file, or of one step by its exit status.

Usage: tally.py FILE STATUS. The first line has the three numbers, and each further line names a failed test
with the first line of its message. A step that failed counts as a failure even if no test of its file did, and so
does one whose file is broken off; a step that left no file, or one without tests, counts as one test.
"""

import pathlib
import sys
import xml.etree.ElementTree as ET


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


def tally(path: pathlib.Path, status: int) -> None:
    found = cases(path)
    failures = []
    for case in found:
        if (why := flaw(case)) is not None:
            message = (why.get("message") or why.text or "").strip().split("\n")[0]
            failures.append(f"{' '.join(name(case))}: {message}"[:300])
    failed = len(failures)
    skipped = sum(1 for case in found if case.find("skipped") is not None)
    passed = len(found) - failed - skipped
    if (status or is_broken_off(path)) and not failed:
        failed = 1
    elif not found and not status:
        passed += 1
    print(passed, failed, skipped)
    for failure in failures:
        print(failure)


tally(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
