"""Vaults and what they stand on: `test-peers vault`, a TPM in software, a keyring on a bus of its own."""

import os
import pathlib
import socket
import subprocess
import typing

import processes
from products import peer
from waiting import until

DRIVER = peer("vault")
# Without the keyring of the user who runs the tests.
BARE = {name: value for name, value in os.environ.items() if not name.startswith(("DBUS_", "VAULT_"))} | {"DISPLAY": ""}


def start(back_end: str, folder: pathlib.Path, *words: str, prefix: tuple[str, ...] = (), **variables: str) -> subprocess.Popen:
    return processes.start([*prefix, *DRIVER, back_end, str(folder), *words], env=BARE | variables, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def ask(back_end: str, folder: pathlib.Path, *words: str, **variables: str) -> str:
    """What the driver says, without the end of the line; a refusal too."""
    with start(back_end, folder, *words, **variables) as driver:
        output, _ = driver.communicate(timeout=60)
    assert driver.returncode in (0, 1), (driver.returncode, output)
    return output.strip()


# A bus on which every user may do everything, and no service starts by itself.
BUS = """<busconfig><type>{type}</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"""


class Machine:
    """Processes that go when the test does."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self._processes: list[subprocess.Popen] = []

    def start(self, *command: str, environment: dict[str, str] | None = None, **options) -> subprocess.Popen:
        with open(self.folder / "log", "ab") as log:
            process = processes.start(command, env=environment or BARE, stderr=log, **{"stdout": log} | options)
        self._processes.append(process)
        return process

    def stop(self, process: subprocess.Popen) -> None:
        process.kill()
        process.wait()
        self._processes.remove(process)

    def __enter__(self) -> typing.Self:
        try:
            self._begin()
        except BaseException:
            # Python does not call `__exit__` of a `with` whose `__enter__` failed.
            self.__exit__()
            raise
        return self

    def __exit__(self, *error) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()


class TPM(Machine):
    """swtpm: the TPM 2.0 reference code as a process."""

    def _begin(self) -> None:
        (self.folder / "tpm").mkdir(exist_ok=True)
        # tpm2-tss takes the control channel to be one port on.
        for port in range(20_000 + os.getpid() % 5_000 * 2, 60_000, 2):
            with socket.socket() as first, socket.socket() as second:
                try:
                    first.bind(("127.0.0.1", port))
                    second.bind(("127.0.0.1", port + 1))
                    break
                except OSError:
                    continue
        self.device = f"swtpm:host=127.0.0.1,port={port}"
        self.process = self.start(
            "swtpm", "socket", "--tpm2", "--tpmstate", f"dir={self.folder}/tpm", "--server", f"type=tcp,port={port}",
            "--ctrl", f"type=tcp,port={port + 1}", "--flags", "not-need-init,startup-clear")
        until(lambda: self._answers(port), "swtpm does not start")

    @staticmethod
    def _answers(port: int) -> bool:
        # Looked up, not connected to: swtpm takes one connection and ends with it.
        listening = pathlib.Path("/proc/net/tcp").read_text(encoding="ascii")
        return all(f":{number:04X} 00000000:0000 0A" in listening for number in (port, port + 1))


class Keyring(Machine):
    """gnome-keyring on a session bus, with keyrings of its own."""
    PASSWORD = b"keyring's"
    LOGIN = "/org/freedesktop/secrets/collection/login"

    def _begin(self) -> None:
        for name in ("data", "run"):
            (self.folder / name).mkdir(mode=0o700)
        config = self.folder / "bus.conf"
        config.write_text(BUS.format(type="session", path=self.folder / "bus"))
        bus = self.start("dbus-daemon", f"--config-file={config}", "--nofork", "--print-address", stdout=subprocess.PIPE)
        address = bus.stdout.readline().decode().strip()
        bus.stdout.close()
        self.variables = {"DBUS_SESSION_BUS_ADDRESS": address, "HOME": str(self.folder),
                          "XDG_DATA_HOME": f"{self.folder}/data", "XDG_RUNTIME_DIR": f"{self.folder}/run"}
        self.begin("--unlock")

    def begin(self, *options: str) -> None:
        """A daemon; with `--unlock` its keyring is open."""
        self.daemon = self.start("gnome-keyring-daemon", "--foreground", "--components=secrets", *options,
                                 environment=BARE | self.variables, stdin=subprocess.PIPE)
        self.daemon.stdin.write(self.PASSWORD)
        self.daemon.stdin.close()
        until(lambda: self.call("org.freedesktop.DBus.Properties.Get", "string:org.freedesktop.Secret.Collection",
                                "string:Locked", path=self.LOGIN).returncode == 0, "no keyring")

    def end(self) -> None:
        self.stop(self.daemon)

    def lock(self) -> None:
        assert self.call("org.freedesktop.Secret.Service.Lock", f"array:objpath:{self.LOGIN}").returncode == 0

    def call(self, method: str, *arguments: str, path: str = "/org/freedesktop/secrets") -> subprocess.CompletedProcess:
        return subprocess.run(["dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.secrets", path, method,
                               *arguments], env=BARE | self.variables, capture_output=True, timeout=10)
