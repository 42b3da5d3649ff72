"""A changed boot id, as after a power loss: the replay file cannot be trusted to have reached the disk, so nothing that
was signed before is accepted. The other boot id is a file, bind-mounted in a mount namespace of the server's own."""

import concurrent.futures
import json
import pathlib
import signal
import uuid

from clock import Clock
from failing import needs_mounts
from gateway import Gateway
from waiting import until

BOOT_ID = "/proc/sys/kernel/random/boot_id"
MOUNT = ("unshare", "-m", "sh", "-c", f'mount --bind "$0" {BOOT_ID} && exec "$@"')


@needs_mounts
def test_nothing_from_before_is_accepted(tmp_path):
    """Whether the file survives or is lost. Both at once, for each waits until a window has passed."""
    with concurrent.futures.ThreadPoolExecutor() as threads:
        for done in [threads.submit(power_is_lost, tmp_path / file, file) for file in ("survives", "is lost")]:
            done.result()


def power_is_lost(tmp_path: pathlib.Path, file: str) -> None:
    tmp_path.mkdir()
    boots = [tmp_path / "boot-1", tmp_path / "boot-2"]
    for boot in boots:
        boot.write_text(f"{uuid.uuid4()}\n")
    gateway = Gateway(tmp_path, clock=Clock(tmp_path)).start(prefix=(*MOUNT, str(boots[0])))
    seen = f"/proc/{gateway.process.pid}/root{BOOT_ID}"
    with open(seen, encoding="ascii") as boot_id:
        assert boot_id.read() == boots[0].read_text(), "the server does not see the other boot id"
    gateway.add_app("demo", window="2s")
    key = gateway.add_release()
    sent = [key.request() for _ in range(20)]
    unsent = [key.request() for _ in range(20)]
    assert [gateway.send(request).status for request in sent] == [200] * 20
    assert gateway.stop(signal.SIGKILL) == -signal.SIGKILL
    if file == "is lost":
        replay = [path for path in gateway.data.iterdir() if path.is_file() and "replay" in path.name]
        assert replay, f"which file is the replay table? {[path.name for path in gateway.data.iterdir()]}"
        for path in replay:
            path.unlink()

    gateway.start(prefix=(*MOUNT, str(boots[1])))
    # Signed before the loss: refused, whether it had been sent or not, because the gateway cannot tell the
    # two apart.
    for request in sent + unsent:
        answer = gateway.send(request)
        assert json.loads(answer.body)["code"] in {"replayed", "stale", "unavailable"}, answer
    # It opens by itself once signatures are newer than the opening and the window.
    until(lambda: gateway.clock.advance(1) or gateway.send(key.request()).status == 200, "it never opens again")
    assert gateway.stop() == 0
