"""`script/serve` as a newcomer runs it: two lines to paste, a second start that builds nothing, and nothing left but the data folder."""

import json
import os
import signal
import subprocess

import processes
from gateway import ROOT


class Script:
    """script/serve in a session of its own, so that Ctrl-C can be sent to all of it as a terminal does."""

    def __init__(self, data, scratch, tools):
        environment = {**os.environ, "COUNTERSIGN_DATA": str(data), "TMPDIR": str(scratch), "HOME": str(scratch),
                       "PATH": f"{tools}:{os.environ['PATH']}"}
        environment.pop("XDG_CONFIG_HOME", None)
        self.process = processes.start([ROOT / "script/serve", "--listen", "127.0.0.1:0", "--admin", "off"], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=scratch,
                                        start_new_session=True)
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if self.lines[-1].lstrip().startswith("curl "):
                break
        else:
            raise AssertionError(self.lines + [self.process.stderr.read()])

    def pasted(self, start: str) -> subprocess.CompletedProcess:
        line = next(line.strip() for line in self.lines if line.strip().startswith(start))
        return subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)

    def interrupt(self) -> int:
        os.killpg(self.process.pid, signal.SIGINT)
        code = self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def left(self) -> list[str]:
        """Processes of its session that are still there."""
        return subprocess.run(["ps", "-s", str(self.process.pid), "-o", "pid=,args="], capture_output=True, text=True,
                              check=False).stdout.split("\n")[:-1]


def test_two_lines_to_paste(tmp_path):
    scratch, tools = tmp_path / "scratch", tmp_path / "tools"
    scratch.mkdir()
    tools.mkdir()
    repository = {path.name for path in ROOT.iterdir()}
    for run_ in range(2):
        script = Script(tmp_path / "data", scratch, tools)
        try:
            for _ in range(2):
                accepted = script.pasted(".build/serve/countersign")
                assert accepted.returncode == 0, accepted.stderr
                assert json.loads(accepted.stdout)["target"] == "/hello"
            refused = script.pasted("curl")
            assert "401" in refused.stdout.split("\n")[0] and '"replayed"' in refused.stdout, refused
        finally:
            code = script.interrupt()
        assert code in (0, 130), code
        assert script.left() == []
        # From the second start on, a start of the compiler would fail.
        (tools / "swift").write_text("#!/bin/sh\nexit 1\n")
        (tools / "swift").chmod(0o755)
    assert list(scratch.iterdir()) == []
    assert {path.name for path in ROOT.iterdir()} - repository == set()
    apps = subprocess.run([ROOT / ".build/serve/countersign", "release", "list", "demo", "--json", "--data",
                           tmp_path / "data"], capture_output=True, text=True, check=False).stdout
    assert apps.count('"1.0"') == 1, "the demo was registered more than once"
