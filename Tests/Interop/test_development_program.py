"""`countersign lab`, `selftest`, `conformance` and `bench` start countersign-lab, the program in the same folder, in the place of this
process: the same arguments, streams and exit status. The server's program contains none of it, and says which package does."""

import pathlib
import shutil
import subprocess

import pytest

from products import BINARY

COMMANDS = ("selftest", "conformance", "bench store", "bench replay", "bench login", "bench verdict", "bench fill", "bench clients",
            "bench", "lab")
# Prints its arguments, a NUL after each, copies standard input to standard error, and ends with status 7.
STAND_IN = "#!/bin/sh\nprintf '%s\\0' \"$@\"\ncat >&2\nexit 7\n"


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> pathlib.Path:
    """The server's program in a folder of its own."""
    return pathlib.Path(shutil.copy(BINARY, tmp_path_factory.mktemp("alone") / "countersign"))


@pytest.fixture(scope="module")
def beside(tmp_path_factory) -> pathlib.Path:
    """The server's program, and a stand-in for the one beside it."""
    folder = tmp_path_factory.mktemp("beside")
    (folder / "countersign-lab").write_text(STAND_IN)
    (folder / "countersign-lab").chmod(0o755)
    return pathlib.Path(shutil.copy(BINARY, folder / "countersign"))


def run(program: pathlib.Path | str, *words: str | bytes, stdin: bytes = b"") -> subprocess.CompletedProcess:
    return subprocess.run([program, *words], input=stdin, capture_output=True, check=False)


@pytest.mark.parametrize("words", [
    ["lab", "--scheme", "a b", "", "--json"], ["bench", "store", "--in", "."], ["conformance", "--", "sh", "-c", "exit 3"],
    ["selftest", b"\xff\xfe"], ["--data", "x", "lab"], ["help", "lab"], ["lab", "--help"], ["help", "bench", "login"],
    ["man", "bench", "login"], ["completion", "bash", "--", "lab", "--sch"],
], ids=str)
def test_arguments_streams_and_status_are_the_programs(beside, words):
    done = run(beside, *words, stdin=b"typed\n\x00")
    given = [word if isinstance(word, bytes) else word.encode() for word in words]
    assert (done.stdout.split(b"\0")[:-1], done.stderr, done.returncode) == (given, b"typed\n\x00", 7)


def test_other_commands_stay(beside):
    for words in (["version"], ["man", "lab", "last"], ["completion", "bash", "--", "la"], ["--help"]):
        done = run(beside, *words)
        assert done.returncode == 0 and b"\0" not in done.stdout, words
    assert run(beside, "lab", "last", "--data", "/nonexistent").returncode == 3


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_runs_in_the_program_beside(command):
    done = run(BINARY, *command.split(), "--help")
    assert done.returncode == 0 and f"usage: countersign {command} [options]" in done.stdout.decode()
    done = run(BINARY, *command.split(), "--no-such-option")
    assert done.returncode == 2 and "has no such option" in done.stderr.decode()


@pytest.mark.parametrize("command", COMMANDS)
def test_without_the_program_the_error_names_its_package(alone, command):
    done = run(alone, *command.split(), "--json")
    error = done.stderr.decode()
    assert (done.returncode, done.stdout) == (1, b"") and error.count("\n") == 1
    assert str(alone.parent / "countersign-lab") in error and "the package countersign-lab" in error
    for words in ([*command.split(), "--help"], ["help", *command.split()], ["man", *command.split()]):
        done = run(alone, *words)
        assert done.returncode == 0 and b"countersign-lab" in done.stdout.replace(b"\\", b""), words
    assert run(alone, "completion", "bash", "--", *command.split(), "--js").stdout == b":none\n"


def test_without_the_gateways_program_the_lab_names_its_package(tmp_path):
    lab = shutil.copy(pathlib.Path(BINARY).resolve().parent / "countersign-lab", tmp_path)
    for words in (["lab", "--scheme", "md5"], ["conformance", "--", "true"]):
        done = run(lab, *words)
        assert done.returncode == 1 and "the package countersign-cli" in done.stderr.decode()


def test_the_servers_program_contains_no_development_module():
    """By the names of their types, which the runtime needs and no `strip` removes."""
    server, lab = (pathlib.Path(BINARY).resolve().parent.joinpath(name).read_bytes() for name in ("countersign", "countersign-lab"))
    for module in (b"14CountersignLab", b"22CountersignConformance", b"21CountersignBenchmarks", b"21CountersignTestServer"):
        assert module in lab, "the check recognizes the module"
        assert module not in server
