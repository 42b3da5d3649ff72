"""The README's first signed call, exactly as it is printed there, works, and so does what it says of sending it again."""

import json
import re
import subprocess

from gateway import ROOT


def test_the_first_signed_call(shared):
    text = (ROOT / "README.md").read_text()
    block, = [block for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "openssl dgst" in block]
    for printed, real in [
        ("key_id=r_…", f"key_id={shared.key.key_id}"), ("secret=…", f"secret={shared.key.secret}"),
        ("host=127.0.0.1:8443", f"host={shared.key.authority}"),
        (".countersign/tls/certificate.pem", str(shared.data / "tls/certificate.pem")),
    ]:
        assert printed in block, printed
        block = block.replace(printed, real)
    call = block[block.index("curl "):]
    script = "; echo; ".join([f"{block}true", f"{call}true", f"{call.replace('/hello', '/hallo')}true"])
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, timeout=20, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line]
    assert len(answers) == 3, (done.stdout, done.stderr)
    assert answers[0]["target"] == "/hello"
    assert [answer.get("code") for answer in answers] == [None, "replayed", "bad-signature"]
