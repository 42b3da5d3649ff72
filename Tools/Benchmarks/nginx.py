"""An nginx of our own for what is measured beside it, as a child that writes only below a folder."""

import pathlib
import subprocess
import time

COMMON = """
daemon off; worker_processes 1; pid {folder}/{name}.pid; error_log {folder}/{name}.log warn;
events {{ worker_connections 4096; }}
http {{
    access_log off; server_tokens off; keepalive_requests 100000000; keepalive_timeout 300s;
    client_body_temp_path {folder}/{name}-body; proxy_temp_path {folder}/{name}-proxy;
    fastcgi_temp_path {folder}/{name}-fastcgi; uwsgi_temp_path {folder}/{name}-uwsgi; scgi_temp_path {folder}/{name}-scgi;
    {http}
}}
"""


class Nginx:
    """An nginx of our own, a child of this process, which writes only below `folder`."""

    def __init__(self, folder: pathlib.Path, name: str, http: str, prefix: tuple[str, ...] = ()):
        """`prefix` is a command that runs it, such as `taskset`."""
        path = folder / f"{name}.conf"
        path.write_text(COMMON.format(folder=folder, name=name, http=http))
        self.process = subprocess.Popen([*prefix, "nginx", "-p", folder, "-c", path, "-e", folder / f"{name}.log"])
        time.sleep(0.5)
        assert self.process.poll() is None, (folder / f"{name}.log").read_text()

    @property
    def worker(self) -> int:
        """The process id of the worker, its only child."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        assert len(children) == 1, children
        return int(children[0])

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used, all threads, user and system. Its clock (clock_getcpuclockid) counts
    nanoseconds, /proc/PID/stat hundredths of a second."""
    return time.clock_gettime(~pid << 3 | 2)
