"""Runs the unit tests of a build, as two processes, and writes one JUnit file.

Usage: unit.py FOLDER, with the build folder. The file is FOLDER/unit.xml. The tests of stores, replay guards and
connections, which wait for servers more than they compute, have a process of their own: in one process they would
occupy the threads that the others compute on. `swift test` is not used, because it locks the build folder, so that
a second one waits for the first.
"""

import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ET

WAITING = r"^(PostgreSQL|Replay|SQLite|HTTP)Tests\."


def begin(build: str, report: str, options: list[str]) -> subprocess.Popen[str]:
    """Begins a process of tests, which writes its report and its log into the build folder."""
    results = pathlib.Path(build, f"{report}.xml")
    results.unlink(missing_ok=True)
    with open(pathlib.Path(build, f"{report}.log"), "w", encoding="utf-8") as log:
        return subprocess.Popen(
            [f"{build}/debug/countersignPackageTests.xctest", "--testing-library", "swift-testing",
             "--xunit-output", results, *options],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, text=True)


def log(build: str, report: str) -> str:
    return pathlib.Path(build, f"{report}.log").read_text(encoding="utf-8", errors="replace")


def cases(build: str, report: str) -> list[ET.Element]:
    """The tests of a process; none if it did not come to its end."""
    try:
        return list(ET.parse(pathlib.Path(build, f"{report}.xml")).iter("testcase"))
    except (FileNotFoundError, ET.ParseError):
        return []


def write(build: str, found: list[ET.Element]) -> None:
    root = ET.Element("testsuites")
    ET.SubElement(root, "testsuite", name="unit").extend(found)
    ET.ElementTree(root).write(pathlib.Path(build, "unit.xml"), encoding="utf-8", xml_declaration=True)


def main(build: str) -> int:
    processes = {
        "unit-waiting": begin(build, "unit-waiting", ["--filter", WAITING]),
        "unit-computing": begin(build, "unit-computing", ["--skip", WAITING]),
    }
    statuses = {report: process.wait() for report, process in processes.items()}
    write(build, [case for report in processes for case in cases(build, report)])
    for report, status in statuses.items():
        lines = log(build, report).splitlines()
        if status:
            print("\n".join(line[:300] for line in lines if "✘" in line and " recorded an issue " in line))
            print("\n".join(lines[-120:]))
        print("\n".join(line for line in lines if line.startswith("measured") or "Test run with" in line))
    # A process without results failed too. What a signal ended has a negative status.
    return max(map(abs, statuses.values())) or int(not all(cases(build, report) for report in processes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
