"""Disks that fail, and where this machine lets a test make them: mounts of its own, and a library that fails in place of the kernel."""

import pathlib
import subprocess

import needs

ROOT = pathlib.Path(__file__).resolve().parents[2]


def can_mount() -> bool:
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


needs_mounts = needs.machine(can_mount(), "the right to make a mount namespace")


def ext4_tells() -> bool:
    """Whether a file system of our own can be made to fail: loop devices, ext4, and its switch for that."""
    return can_mount() and pathlib.Path("/sys/fs/ext4").is_dir() and \
        subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode == 0


def needs_ext4(test):
    return needs.programs("mkfs.ext4")(needs.machine(ext4_tells(), "a loop device with ext4")(test))


class Ext4:
    """A file system in a file, mounted for one program and those that are started beside it."""

    def __init__(self, image: pathlib.Path, folder: pathlib.Path):
        self.image, self.folder = image, folder
        folder.mkdir()
        with open(image, "wb") as file:
            file.truncate(64 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        # As Linux does when it finds a file system damaged.
        mount = f'mount -o loop,errors=remount-ro "{image}" "{folder}" && chmod 700 "{folder}" && exec "$@"'
        self.prefix = ("unshare", "-m", "sh", "-c", mount, "sh")

    def breaks(self, *inside: str) -> None:
        """Makes the kernel find damage and remount the file system read-only. `inside` runs a command where
        it is mounted."""
        found = subprocess.run([*inside, "findmnt", "-no", "SOURCE", self.folder], capture_output=True, check=True)
        device = pathlib.Path(found.stdout.decode().strip()).name
        pathlib.Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("a test")

    def is_mended(self) -> None:
        """As an administrator does it, before it is mounted again."""
        subprocess.run(["e2fsck", "-fy", self.image], capture_output=True, check=False)


class FailingDisk:
    """Tests/Support/failing_disk.c and its switch."""

    def __init__(self, folder: pathlib.Path, files: str = ".db"):
        library, self.switch = folder / "failing_disk.so", folder / "failing"
        subprocess.run(["cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", library, ROOT / "Tests/Support/failing_disk.c"],
                       check=True)
        self.environment = {"LD_PRELOAD": str(library), "FAILING_DISK": str(self.switch), "FAILING_FILES": files}

    def fails(self, error: int) -> None:
        staged = self.switch.with_name("staged")
        staged.write_text(f"{error}")
        staged.rename(self.switch)

    def is_well(self) -> None:
        self.switch.unlink()

    @property
    def failures(self) -> list[str]:
        """A call and a file for each."""
        log = self.switch.with_name("failing.log")
        return log.read_text().splitlines() if log.exists() else []
