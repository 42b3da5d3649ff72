"""The lab with other people's eyes and hands: tshark listens on the interface, mitmproxy stands in the middle."""

import json
import pathlib

import pytest
from gateway import ROOT, run

MITMDUMP = ROOT / ".build/mitmproxy/bin/mitmdump"


def cells(attack: str, tool: str, *rows: str) -> dict:
    done = run("lab", "--scheme", ",".join(rows), "--attack", attack, "--with", tool, "--json", timeout=180)
    assert done.returncode == 0, done.err or done.out
    return {row["scheme"]: row["cells"][attack] for row in json.loads(done.out)["rows"]}


def story(cell: dict) -> str:
    return "\n".join(f"{step['did']}\n{step['shown'] or ''}" for step in cell["steps"])


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


def test_mitmproxy_robs_who_trusts_its_authority_and_nobody_else():
    found = cells("mitm", f"mitmproxy={MITMDUMP}", "md5+gateway", "countersign")
    assert all("stands in the middle with mitmproxy" in story(cell) for cell in found.values())
    assert found["md5+gateway"]["verdict"] == "F"
    assert found["countersign"]["verdict"] == "H"
    assert "refuses the attacker's certificate" in found["countersign"]["how"]


def test_a_tool_that_is_not_there_is_an_error_and_no_verdict(tmp_path: pathlib.Path):
    done = run("lab", "--scheme", "countersign", "--attack", "mitm", "--with", f"mitmproxy={tmp_path / 'mitmdump'}", "--json",
               timeout=60)
    assert done.returncode == 1
    cell = json.loads(done.out)["rows"][0]["cells"]["mitm"]
    assert "verdict" not in cell or cell["verdict"] not in {"H", "F"}


@pytest.mark.parametrize("word", ["wireshark", "tshark,", "mitmproxy="])
def test_an_unknown_tool_is_a_usage_error(word: str):
    done = run("lab", "--scheme", "countersign", "--with", word)
    assert done.returncode == 2
    assert "expected tshark, mitmproxy or mitmproxy=PATH" in done.err
