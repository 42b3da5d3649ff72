"""What docs/start.md shows to newcomers works exactly as it is printed there."""

import json
import os
import re
import subprocess

from gateway import BINARY, ROOT


def block_with(words: str) -> str:
    """The one block of shell in the guide that has these words."""
    text = (ROOT / "docs/start.md").read_text()
    block, = [block for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if words in block]
    return block


def test_the_first_signed_call(shared):
    block = block_with("openssl dgst")
    for printed, real in [
        ("key_id=r_…", f"key_id={shared.key.key_id}"), ("secret=…", f"secret={shared.key.secret}"),
        ("host=127.0.0.1:8443", f"host={shared.key.authority}"),
        (".countersign/tls/certificate.pem", str(shared.data / "tls/certificate.pem")),
    ]:
        assert printed in block, printed
        block = block.replace(printed, real)
    call = block[block.index("curl "):]
    script = "; echo; ".join([f"{block}true", f"{call}true", f"{call.replace('/hello', '/hallo')}true"])
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, timeout=60, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line]
    assert len(answers) == 3, (done.stdout, done.stderr)
    assert answers[0]["target"] == "/hello"
    assert [answer.get("code") for answer in answers] == [None, "replayed", "bad-signature"]


def test_the_first_sign_in(shared, tmp_path):
    made = json.loads(shared.admin("release", "add", "demo", "--platform", "ios", "--version", "3.0", "--json").out)
    block = block_with("countersign signup")
    for printed, real in [
        (".build/serve/countersign", BINARY), ("https://127.0.0.1:8443", shared.url), ("AUTHORITY_KEY", made["authority_key"]),
        (".countersign/tls/certificate.pem", str(shared.data / "tls/certificate.pem")),
        # What a person types when asked.
        ("signup --profile demo --account alice ", "signup --profile demo --account alice --password-stdin <<< tr0ub4dor "),
        ("login --profile demo --account alice\n", "login --profile demo --account alice --password-stdin <<< tr0ub4dor\n"),
    ]:
        assert printed in block, printed
        block = block.replace(printed, real)
    environment = {"key_id": made["key_id"], "secret": made["secret"], "COUNTERSIGN_DATA": str(shared.data),
                   "XDG_CONFIG_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run(["bash", "-euc", block], capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert '"countersign-account":"name:alice"' in done.stdout
    assert "signed in as alice" in done.stdout and done.stdout.endswith("signed out\n")
