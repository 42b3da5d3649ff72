"""What an app is built with: where its server is, whom to take for it, and the release's key."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from .encoding import decode
from .errors import ClientError


@dataclass(frozen=True)
class Setup:
    url: str
    app: str
    release: str
    secret: bytes = field(repr=False)
    authority_key: bytes
    pins: frozenset[str]
    # The key that the server rotates to. None where the app was built without it.
    next_authority_key: bytes | None = None
    # Ed25519, 32 bytes: whose pin manifests are believed. None where the app takes none.
    manifest_key: bytes | None = None
    # The manifest that `pins` stand for: none that is not newer replaces them.
    pins_version: int = 0
    prefix: str = "/countersign/v1"
    device_class: str = "desktop"
    device_name: str = "python"
    # Seconds that the device's clock is off: an argument, so that a test can decide it.
    clock_offset: int = 0

    @classmethod
    def read(cls, members: dict) -> "Setup":
        """From JSON: `release add --json` prints `key_id`, `secret`, `authority_key`, `next_authority_key`
        and `app`; `url` and `pins` come to it."""
        try:
            pins = [*members["pins"], *members.get("backup_pins", [])]
            setup = cls(
                url=members["url"].rstrip("/"), app=members["app"], release=members["key_id"],
                secret=decode(members["secret"], 32), authority_key=decode(members["authority_key"], 32),
                pins=frozenset(pins),
                next_authority_key=(decode(members["next_authority_key"], 32)
                                    if "next_authority_key" in members else None),
                manifest_key=decode(members["manifest_key"], 32) if "manifest_key" in members else None,
                pins_version=int(members.get("pins_version", 0)),
                prefix=members.get("prefix", cls.prefix),
                device_class=members.get("device_class", cls.device_class),
                device_name=members.get("device_name", cls.device_name),
                clock_offset=int(members.get("clock_offset", 0)))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ClientError("bad-input", f"the setup: {error!r}") from error
        parts = urlsplit(setup.url)
        if parts.scheme != "https" or not parts.hostname or parts.path or not pins:
            raise ClientError("bad-input", "the setup: expected https://HOST[:PORT] and at least one pin")
        return setup

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 443

    @property
    def authority(self) -> str:
        """As `Host` and `@authority` have it: without the port where that is the scheme's own."""
        return self.host if self.port == 443 else f"{self.host}:{self.port}"
