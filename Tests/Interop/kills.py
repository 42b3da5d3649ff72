"""Commands that are killed at a system call of their own, which is the same point on each machine. Needs strace."""


def killed_at(call: str, number: int) -> tuple[str, ...]:
    """A prefix for a command, which is killed before the call that is the `number`th of this kind on its thread."""
    return ("strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={number}")
