"""The programs under test, by name, in the folder of one build: COUNTERSIGN_BUILD, else the release build's. COUNTERSIGN_BINARY
is another `countersign` alone."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("COUNTERSIGN_BUILD", ".build/release")
BINARY = os.environ.get("COUNTERSIGN_BINARY", str(BUILD / "countersign"))


def product(name: str) -> str:
    return str(BUILD / name)
