"""`kill -9` under load: what was accepted before it is never accepted again after it."""

import json
import signal
import threading

from gateway import Gateway
from wire import Closed


class Load:
    """Threads that each send signed requests one after the other, and note which were accepted."""

    def __init__(self, gateway: Gateway, key, threads: int = 4):
        self.gateway, self.key = gateway, key
        self.accepted: list[bytes] = []
        self.failed = threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def run(self) -> None:
        try:
            with self.gateway.connect(timeout=10) as connection:
                while True:
                    request = self.key.request("POST", "/order", b"amount=1")
                    connection.send(request)
                    answer = connection.answer()
                    assert answer.status == 200, answer
                    self.accepted.append(request)
        except (Closed, OSError):
            self.failed.set()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(20)
            assert not thread.is_alive()


def test_replays_stay_refused(tmp_path, is_long, note):
    gateway = Gateway(tmp_path).start()
    gateway.add_app("demo")
    key = gateway.add_release()
    kills, before, after = 20 if is_long else 3, 0, 0
    for round_ in range(kills):
        load = Load(gateway, key)
        # Long enough to be in full run, and never at the same place.
        load.failed.wait(0.6 + 0.037 * round_)
        assert not load.failed.is_set(), "the load ended before the kill"
        assert gateway.stop(signal.SIGKILL) == -signal.SIGKILL, "it did not die of the kill"
        load.join()
        assert load.failed.is_set(), "nobody noticed the kill"
        assert len(load.accepted) > 100, "there was no load to speak of"
        gateway.start()
        codes: dict[str, int] = {}
        # A connection ends after 10,000 requests.
        for start in range(0, len(load.accepted), 5_000):
            with gateway.connect() as connection:
                for request in load.accepted[start:start + 5_000]:
                    connection.send(request)
                    answer = connection.answer()
                    code = json.loads(answer.body)["code"] if answer.status != 200 else "accepted"
                    codes[code] = codes.get(code, 0) + 1
        before, after = before + len(load.accepted), after + codes.get("accepted", 0)
        assert codes == {"replayed": len(load.accepted)}, (round_, codes)
        assert gateway.send(key.request()).status == 200, "after the restart nothing is accepted at all"
    assert gateway.stop() == 0
    note(f"{kills} kills by SIGKILL under load: {before:,} requests accepted before, {after} of them again after")
