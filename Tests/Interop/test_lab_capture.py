"""The lab with other people's eyes and hands: tshark listens on the interface, mitmproxy stands in the middle."""

import json
import subprocess

import needs
import pytest
from gateway import ROOT, run

MITMDUMP = ROOT / ".build/mitmproxy/bin/mitmdump"


def can_capture() -> bool:
    """Whether tshark may listen on the loopback interface here: a right that no package brings."""
    if needs.missing("tshark"):
        return True
    return subprocess.run(["tshark", "-i", "lo", "-a", "duration:0"], capture_output=True, timeout=60, check=False).returncode == 0


def cells(attack: str, tool: str, *rows: str) -> dict:
    done = run("lab", "--scheme", ",".join(rows), "--attack", attack, "--with", tool, "--json", timeout=180)
    assert done.returncode == 0, done.err or done.out
    return {row["scheme"]: row["cells"][attack] for row in json.loads(done.out)["rows"]}


def story(cell: dict) -> str:
    return "\n".join(f"{step['did']}\n{step['shown'] or ''}" for step in cell["steps"])


@needs.programs("tshark")
@needs.machine(can_capture(), "the right to capture on lo")
def test_tshark_reads_plain_http_and_no_tls():
    found = cells("eavesdrop", "tshark", "md5", "countersign", "countersign-no-tls")
    assert all("listens with tshark" in story(cell) for cell in found.values())
    assert found["md5"]["verdict"] == "F"
    assert "→ POST /login/login.php HTTP/1.1" in story(found["md5"])
    # Over TLS there is nothing to read; without it there is, and nothing to act with.
    assert found["countersign"]["verdict"] == "H"
    assert "→ TLS handshake" in story(found["countersign"]) and "HTTP/1.1" not in story(found["countersign"])
    assert found["countersign-no-tls"]["verdict"] == "H"
    assert "→ POST /countersign/v1/login/start HTTP/1.1" in story(found["countersign-no-tls"])


@needs.programs(str(MITMDUMP))
def test_mitmproxy_robs_who_trusts_its_authority_and_nobody_else():
    found = cells("mitm", f"mitmproxy={MITMDUMP}", "md5+gateway", "countersign")
    assert all("stands in the middle with mitmproxy" in story(cell) for cell in found.values())
    assert found["md5+gateway"]["verdict"] == "F"
    assert found["countersign"]["verdict"] == "H"
    assert "refuses the attacker's certificate" in found["countersign"]["how"]


@pytest.mark.parametrize("word", ["wireshark", "tshark,", "mitmproxy="])
def test_an_unknown_tool_is_a_usage_error(word: str):
    done = run("lab", "--scheme", "countersign", "--with", word)
    assert done.returncode == 2
    assert "expected tshark, mitmproxy or mitmproxy=PATH" in done.err
