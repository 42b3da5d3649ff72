"""What a test needs that a machine may lack. With COUNTERSIGN_NO_SKIPS=1, as in CI, a skip fails with its reason (conftest.py), except for want
of what no package brings: a right, or a device. Those are announced and counted everywhere."""

import os
import shutil

import pytest

from products import BREAKABLE

NO_SKIPS = os.environ.get("COUNTERSIGN_NO_SKIPS") == "1"
MACHINE = "not on this machine: "


def programs(*names: str) -> pytest.MarkDecorator:
    """Programs, each of a package in script/packages.txt; by name, or by path where they are on none."""
    absent = missing(*names)
    return pytest.mark.skipif(absent is not None, reason=f"no {absent}")


def machine(is_there: bool, what: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not is_there, reason=MACHINE + what)


# For tests that plant a fault.
breakable = pytest.mark.skipif(not os.access(BREAKABLE, os.X_OK), reason="no program with planted faults: swift build makes it")


def missing(*names: str) -> str | None:
    """The first program that is not on this machine."""
    return next((name for name in names if not shutil.which(name)), None)


def is_excused(reason: str) -> bool:
    return not NO_SKIPS or reason.removeprefix("Skipped: ").startswith(MACHINE)
