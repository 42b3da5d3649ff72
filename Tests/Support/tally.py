"""Prints how many tests passed, failed and were skipped: of a JUnit file, or of one step by its exit status.

Usage: tally.py FILE STATUS. A step that failed counts as a failure even where no test of its file did, and a step that
left no file, or an empty one, counts as one test.
"""

import pathlib
import sys
import xml.etree.ElementTree as ET

path, status = pathlib.Path(sys.argv[1]), int(sys.argv[2])
cases = list(ET.parse(path).iter("testcase")) if path.is_file() else []
failed = sum(1 for case in cases if case.find("failure") is not None or case.find("error") is not None)
skipped = sum(1 for case in cases if case.find("skipped") is not None)
passed = len(cases) - failed - skipped
if status and not failed:
    failed = 1
elif not cases:
    passed = 1
print(passed, failed, skipped)
