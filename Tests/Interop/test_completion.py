"""Completion in bash, zsh and fish: the shells' own, with the scripts that the program prints."""

import os
import pathlib
import pty
import select
import subprocess

import pytest

from gateway import run
from needs import programs
from products import BINARY
from waiting import HANGS


def candidates(*words: str) -> tuple[list[str], str]:
    """What may stand for the last word, and the paths that may."""
    done = run("completion", "bash", "--", *words)
    assert done.returncode == 0, done.err
    *lines, paths = done.out.splitlines()
    return [line.split("\t")[0] for line in lines], paths


@pytest.mark.parametrize(("words", "found", "paths"), [
    (["--data", "/x", "repl"], ["replay"], ":none"), (["serve", "--tls", "=", "a"], ["auto"], ":none"),
    (["serve", "--upstream-ca", ""], [], ":files"), (["serve", "--data", "/v"], [], ":folders"),
    (["account", "import", "shop", ""], [], ":files"), (["serve", "--nonsense", ""], [], ":none"), ([""], None, ":none"),
])
def test_candidates(words, found, paths):
    listed, listed_paths = candidates(*words)
    if found is None:
        assert len(listed) > 30 and len(set(listed)) == len(listed)
    else:
        assert sorted(listed) == sorted(found)
    assert listed_paths == paths


def test_each_option_of_each_command_is_offered():
    for words in (["serve"], ["app", "policy"], ["request"]):
        options = [line.split("--")[1].split()[0] for line in run(*words, "--help").out.splitlines() if line.startswith("  ") and "--" in line[:8]]
        listed, _ = candidates(*words, "--")
        assert set(f"--{option}" for option in options) <= set(listed) and len(options) > 2


class Terminal:
    """An interactive shell at a terminal of its own, in which keys are pressed."""

    def __init__(self, *command: str, folder: pathlib.Path):
        (folder / "bin").mkdir()
        (folder / "bin/countersign").symlink_to(pathlib.Path(BINARY).resolve())
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder),
                                             "TERM": "dumb", "PS1": "$ ", "INPUTRC": "/dev/null"})
        self.seen = ""

    def press(self, keys: str, expected: str) -> None:
        """Sends keys, and waits until the shell has written `expected` since."""
        self.seen = ""
        os.write(self.terminal, keys.encode())
        while expected not in self.seen:
            assert select.select([self.terminal], [], [], HANGS)[0], f"{keys!r}: {self.seen!r}"
            self.seen += os.read(self.terminal, 65_536).decode(errors="replace")

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.terminal)
        os.waitpid(self.process, 0)


@programs("bash")
def test_bash(tmp_path):
    (tmp_path / "certificates").mkdir()
    (tmp_path / "authorities file.pem").write_text("")
    with Terminal("bash", "--norc", "--noprofile", "-i", folder=tmp_path) as terminal:
        terminal.press("bind 'set enable-bracketed-paste off'; source <(countersign completion bash); echo do''ne\n", "done")
        terminal.press("echo a''t; countersign vers\t--js\t\n", '"version"')
        terminal.press("echo a''t; countersign serve --print-con\t--tls=of\t\n", '"tls": "off"')
        terminal.press("echo a''t; countersign serve --print-config --upstream-ca autho\t\n", "authorities file.pem\"")
        terminal.press("echo a''t; countersign serve --print-config --data cert\t\n", '"data": "certificates/"')
        terminal.press("countersign release re\t", "retire ")


@programs("zsh")
def test_zsh(tmp_path):
    (tmp_path / "authorities file.pem").write_text("")
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions/_countersign").write_text(run("completion", "zsh").out)
    with Terminal("zsh", "-f", "-i", folder=tmp_path) as terminal:
        terminal.press("unsetopt zle_bracketed_paste; fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -D; echo do''ne\n", "done")
        terminal.press("countersign vers\t--js\t\n", '"version"')
        terminal.press("countersign serve --print-con\t--tls=of\t\n", '"tls": "off"')
        terminal.press("countersign serve --print-config --upstream-ca=autho\t\n", "authorities file.pem\"")


@programs("zsh")
def test_zsh_takes_the_script_by_source_as_well(tmp_path):
    script = tmp_path / "completion.zsh"
    script.write_text(run("completion", "zsh").out)
    done = subprocess.run(["zsh", "-f", "-c", f"autoload -Uz compinit; compinit -u -D; source {script}; echo $_comps[countersign]"],
                          capture_output=True, text=True, check=False)
    assert done.stdout == "_countersign\n", done.stderr


@programs("fish")
def test_fish(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/countersign").symlink_to(pathlib.Path(BINARY).resolve())
    (tmp_path / "authorities.pem").write_text("")
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "HOME": str(tmp_path)}

    def completed(line: str) -> list[str]:
        done = subprocess.run(["fish", "--no-config", "-c", "countersign completion fish | source; complete --do-complete $argv[1]", line],
                              cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return [found.split("\t")[0] for found in done.stdout.splitlines()]

    assert completed("countersign vers") == ["version"]
    assert "serve" in completed("countersign ") and len(completed("countersign ")) > 30
    assert completed("countersign serve --tls=a") == ["--tls=auto"]
    assert sorted(completed("countersign serve --tls ")) == ["auto", "off"]
    assert completed("countersign serve --upstream-ca autho") == ["authorities.pem"]


def test_a_shell_that_is_none():
    done = run("completion", "csh")
    assert done.returncode == 2 and "expected bash, zsh or fish" in done.err
