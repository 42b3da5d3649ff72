"""A disk that loses what was not made durable: rebuilds files from a traced run's writes.

strace tells, in order, what a program wrote where and which fsync came back. A write counts as on the disk once an fsync of its
file, begun after it, has come back; a new file once an fsync of its folder has. All else is lost, or, torn, there in part. What a
program says of it, on its standard output or over TCP, is told in between. Only the database's files, and those of the log of keyed
requests, are rebuilt.
"""

import dataclasses
import pathlib
import random
import re
import typing

CALLS = "openat,pwrite64,pwritev,write,sendto,fsync,fdatasync,ftruncate,unlink,rename"
SECTOR = 512

_LINE = re.compile(r"^(\d+) +(.*)$")
_RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$")
_CALL = re.compile(r"^(\w+)\((.*)\) += (-?\d+)(?:<(.*)>)?(?: .*)?$")
_FILE = re.compile(r"^(\d+)<([^>]*)>(?:\(deleted\))?(?:, )?(.*)$", re.DOTALL)
_WRITE = re.compile(r'^"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?, (\d+)(?:, (\d+))?$')
_SEND = re.compile(r'^sendto\(\d+<TCP:\[[^\]]*:(\d+)->[^\]]*:(\d+)\]>, "((?:\\x[0-9a-f]{2})*)", ')
_KEPT = re.compile(r"\.db|/requests-\d+\.log$")
_OPEN = re.compile(r'^[^,]*, "((?:\\x[0-9a-f]{2})*)", ([A-Z_|]+)')


def traced(trace: pathlib.Path, command: list[str]) -> list[str]:
    """The command, so that it leaves a trace. A bound that no single write of a database reaches: nothing is cut off."""
    return ["strace", "-f", "-yy", "-xx", "-s", "1000000", "-e", f"trace={CALLS}", "-o", str(trace), *command]


@dataclasses.dataclass
class Event:
    """What a program did, in the order in which it came back."""
    kind: str  # create, remove, write, truncate, sync, output, sent
    # Of what was sent: the port of this end, `->`, and that of the other.
    path: str
    offset: int = 0
    data: bytes = b""
    # Of a sync: how many events had come back when it began.
    since: int = 0


def events(trace: pathlib.Path) -> list[Event]:
    found: list[Event] = []
    begun: dict[str, tuple[str, int]] = {}
    with open(trace, encoding="ascii") as lines:
        for line in lines:
            process, text = _LINE.match(line.rstrip("\n")).groups()
            # It is said as soon as it begins to be: the other end may hear it before the call comes back.
            if sent := _SEND.match(text):
                found.append(Event("sent", f"{sent[1]}->{sent[2]}", data=_bytes(sent[3])))
                text = text.replace("sendto(", "said(", 1)
            if text.endswith("<unfinished ...>"):
                begun[process] = (text.removesuffix("<unfinished ...>").rstrip(), len(found))
                continue
            since = len(found)
            if resumed := _RESUMED.match(text):
                start, since = begun.pop(process)
                text = start + resumed[2]
            if event := _event(text, since):
                found.append(event)
    return found


def _event(text: str, since: int) -> Event | None:
    call = _CALL.match(text)
    if not call or int(call[3]) < 0:
        return None
    name, arguments, result = call[1], call[2], int(call[3])
    if name in {"said", "sendto"}:
        return None
    if name == "openat":
        path, flags = _OPEN.match(arguments).groups()
        return Event("create", _bytes(path).decode()) if "O_CREAT" in flags else None
    if name == "unlink":
        return Event("remove", _bytes(arguments.strip('"')).decode())
    if name in {"rename", "pwritev"}:
        assert b".db".hex(" ") not in arguments.replace("\\x", " "), f"a run with {name} cannot be rebuilt: {text[:200]}"
        return None
    number, path, rest = _FILE.match(arguments).groups()
    path = _bytes(path).decode() if path.startswith("\\x") else path
    if name in {"fsync", "fdatasync"}:
        return Event("sync", path, since=since)
    if name == "ftruncate":
        return Event("truncate", path, offset=int(rest))
    whole = _WRITE.match(rest)
    assert whole, f"a write that cannot be read: {text[:120]} … {text[-120:]}"
    data, cut, count, offset = whole.groups()
    assert not cut and int(count) == result, f"a write that is not whole: {text[-80:]}"
    if number == "1":
        return Event("output", path, data=_bytes(data))
    return Event("write", path, offset=int(offset or 0), data=_bytes(data)) if name == "pwrite64" else None


def _bytes(escaped: str) -> bytes:
    return bytes.fromhex(escaped.replace("\\x", ""))


class Disk:
    """What of some files is durable, and what is on its way."""

    def __init__(self, folder: pathlib.Path, before: pathlib.Path | None = None):
        """`before` is a copy of the folder from before the run."""
        self.folder = str(folder)
        kept = [path for path in before.iterdir() if _KEPT.search(str(path))] if before else []
        self.durable = {f"{folder}/{path.name}": bytearray(path.read_bytes()) for path in kept}
        self.named = {*self.durable}
        self.pending: dict[str, list[tuple[int, Event]]] = {}
        self.new: dict[str, int] = {}
        self.removed: dict[str, int] = {}

    def see(self, number: int, event: Event) -> None:
        """The `number`th event of the run has come back."""
        if event.path == self.folder:
            if event.kind == "sync":
                ready = [path for path, created in self.new.items() if created < event.since]
                self.named |= {path for path in ready if self.new.pop(path) >= 0}
                for path in [path for path, removed in self.removed.items() if removed < event.since]:
                    self._forget(path)
            return
        if not event.path.startswith(f"{self.folder}/") or not _KEPT.search(event.path) or event.path.endswith("-shm"):
            return
        if event.kind == "create":
            if event.path in self.removed:
                self._forget(event.path)
            if event.path not in self.named:
                self.new.setdefault(event.path, number)
        elif event.kind == "remove":
            self.removed[event.path] = number
        elif event.kind in {"write", "truncate"}:
            self.pending.setdefault(event.path, []).append((number, event))
        elif event.kind == "sync":
            waiting = self.pending.get(event.path, [])
            for _, write in (pair for pair in waiting if pair[0] < event.since):
                _apply(write, self.durable.setdefault(event.path, bytearray()))
            self.pending[event.path] = [pair for pair in waiting if pair[0] >= event.since]

    def _forget(self, path: str) -> None:
        del self.removed[path]
        self.named.discard(path)
        self.new.pop(path, None)
        self.durable.pop(path, None)
        self.pending.pop(path, None)

    @property
    def at_risk(self) -> int:
        """Bytes that a loss of power would take."""
        return sum(len(write.data) for writes in self.pending.values() for _, write in writes)

    def rebuild(self, target: pathlib.Path, torn: random.Random | None = None) -> None:
        """The files as they are found after the power came back. `torn` decides which sectors of what was on its way
        had reached the disk: any, in any order."""
        target.mkdir()
        for path in self.named:
            content = bytearray(self.durable.get(path, b""))
            if torn:
                waiting = [write for _, write in self.pending.get(path, [])]
                for write in torn.sample(waiting, torn.randint(0, len(waiting))):
                    _apply(write, content, torn)
            (target / pathlib.Path(path).name).write_bytes(content)


def _apply(write: Event, content: bytearray, torn: random.Random | None = None) -> None:
    if write.kind == "truncate":
        del content[write.offset:]
        content.extend(bytes(write.offset - len(content)))
        return
    end = write.offset + len(write.data)
    content.extend(bytes(max(end - len(content), 0)))
    if not torn:
        content[write.offset:end] = write.data
        return
    for start in range(write.offset, end, SECTOR):
        if torn.random() < 0.5:
            stop = min(start + SECTOR, end)
            content[start:stop] = write.data[start - write.offset:stop - write.offset]


def losses(trace: pathlib.Path, folder: pathlib.Path, see: typing.Callable[[bytes], None], *,
           before: pathlib.Path | None = None, keeps_last_sync: bool = True) -> typing.Iterator[tuple[Event, Disk]]:
    """Goes through a run, and gives the disk as it is after each event; `see` is told of each line of output before. Without
    its last sync it is a disk that said yes and did nothing: for a test of the test."""
    disk = Disk(folder, before)
    held: tuple[int, Event] | None = None
    for number, event in enumerate(events(trace)):
        if event.kind == "sync" and not keeps_last_sync and event.path.endswith("-wal"):
            if held:
                disk.see(*held)
            held = (number, event)
        else:
            disk.see(number, event)
        if event.kind == "output":
            see(event.data)
        yield event, disk
