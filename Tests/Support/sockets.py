"""What the kernel knows of the other end of a connection over loopback."""

import errno
import socket
import struct

# Source: sock_diag(7).
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, NLMSG_ERROR, INET_DIAG_NOCOOKIE = 4, 20, 1, 2, 0xFFFF_FFFF
ESTABLISHED = 1


def end(local: tuple[str, int], remote: tuple[str, int]) -> tuple[int, int] | None:
    """The state of this end of an IPv4 connection, and the bytes that its process has not read; none if it is gone."""
    request = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0xFFFF_FFFF) + struct.pack(
        "!HH4s12x4s12x", local[1], remote[1], socket.inet_aton(local[0]), socket.inet_aton(remote[0])) + struct.pack(
        "=III", 0, INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        kernel.send(struct.pack("=IHHII", 16 + len(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 1, 0) + request)
        answer = kernel.recv(4_096)
    if struct.unpack_from("=IH", answer)[1] == NLMSG_ERROR:
        error = -struct.unpack_from("=i", answer, 16)[0]
        if error != errno.ENOENT:
            raise OSError(error, "the kernel does not tell of connections")
        return None
    return answer[17], struct.unpack_from("=I", answer, 72)[0]


def is_established(local: tuple[str, int], remote: tuple[str, int]) -> bool:
    """Whether neither process has closed the connection, as far as this end knows."""
    found = end(local, remote)
    return found is not None and found[0] == ESTABLISHED


def is_read(*sockets: socket.socket) -> bool:
    """Whether the peers, processes of this machine, have read all that has arrived, or have closed the connection."""
    for sock in sockets:
        try:
            ends = sock.getpeername(), sock.getsockname()
        except OSError:
            continue
        if (peer := end(*ends)) and peer[1]:
            return False
    return True


def has_arrived(sock: socket.socket) -> bool:
    """Whether the peer has bytes to read, or has closed the connection."""
    return not is_established(sock.getpeername(), sock.getsockname()) or not is_read(sock)
