"""Prints how many tests passed, failed and were skipped: of a JUnit file, or of one step by its exit status.

Usage: tally.py FILE STATUS. The first line has the three numbers, and each further line names a failed test with
the first line of its message. A step that failed counts as a failure even if no test of its file did, and a step
that left no file, or an empty one, counts as one test.
"""

import pathlib
import sys
import xml.etree.ElementTree as ET

path, status = pathlib.Path(sys.argv[1]), int(sys.argv[2])
cases = list(ET.parse(path).iter("testcase")) if path.is_file() else []
failures = []
for case in cases:
    flaw = case.find("failure") if case.find("failure") is not None else case.find("error")
    if flaw is not None:
        message = (flaw.get("message") or flaw.text or "").strip().split("\n")[0]
        failures.append(f"{case.get('classname', '')} {case.get('name', '')}: {message}"[:300])
failed = len(failures)
skipped = sum(1 for case in cases if case.find("skipped") is not None)
passed = len(cases) - failed - skipped
if status and not failed:
    failed = 1
elif not cases:
    passed = 1
print(passed, failed, skipped)
for failure in failures:
    print(failure)
