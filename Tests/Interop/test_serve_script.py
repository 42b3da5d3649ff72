"""`script/serve` as a newcomer runs it: two lines to paste, a quick second start, and nothing left but the data folder."""

import json
import os
import signal
import subprocess
import time

from gateway import ROOT

# script/serve starts the release build.


class Script:
    """script/serve in a session of its own, so that Ctrl-C can be sent to all of it as a terminal does."""

    def __init__(self, data, scratch):
        environment = {**os.environ, "COUNTERSIGN_DATA": str(data), "TMPDIR": str(scratch), "HOME": str(scratch)}
        environment.pop("XDG_CONFIG_HOME", None)
        self.process = subprocess.Popen([ROOT / "script/serve", "--listen", "127.0.0.1:0", "--admin", "off"], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=scratch,
                                        start_new_session=True)
        began, self.lines = time.monotonic(), []
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if self.lines[-1].lstrip().startswith("curl "):
                break
        else:
            raise AssertionError(self.lines + [self.process.stderr.read()])
        self.took = time.monotonic() - began

    def pasted(self, start: str) -> subprocess.CompletedProcess:
        line = next(line.strip() for line in self.lines if line.strip().startswith(start))
        return subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=ROOT, timeout=20, check=False)

    def interrupt(self) -> int:
        os.killpg(self.process.pid, signal.SIGINT)
        code = self.process.wait(20)
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def left(self) -> list[str]:
        """Processes of its session that are still there."""
        return subprocess.run(["ps", "-s", str(self.process.pid), "-o", "pid=,args="], capture_output=True, text=True,
                              check=False).stdout.split("\n")[:-1]


def test_two_lines_to_paste(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    repository = {path.name for path in ROOT.iterdir()}
    for run_ in range(2):
        script = Script(tmp_path / "data", scratch)
        try:
            for _ in range(2):
                accepted = script.pasted(".build/release/countersign")
                assert accepted.returncode == 0, accepted.stderr
                assert json.loads(accepted.stdout)["target"] == "/hello"
            refused = script.pasted("curl")
            assert "401" in refused.stdout.split("\n")[0] and '"replayed"' in refused.stdout, refused
        finally:
            code = script.interrupt()
        assert code in (0, 130), code
        assert script.left() == []
        assert run_ == 0 or script.took < 2.5, f"the second start took {script.took:.1f} s"
    assert list(scratch.iterdir()) == []
    assert {path.name for path in ROOT.iterdir()} - repository == set()
    apps = subprocess.run([ROOT / ".build/release/countersign", "release", "list", "demo", "--json", "--data",
                           tmp_path / "data"], capture_output=True, text=True, check=False).stdout
    assert apps.count('"1.0"') == 1, "the demo was registered more than once"
