"""The request in the form that http-message-signatures, an independent implementation, expects."""

from dataclasses import dataclass, field


@dataclass
class Message:
    """The shape of a request that http-message-signatures works on."""
    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def wire(self) -> bytes:
        target = "/" + self.url.split("/", 3)[3]
        lines = [f"{self.method} {target} HTTP/1.1"] + [f"{name}: {value}" for name, value in self.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + self.body
