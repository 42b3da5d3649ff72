"""A small client of a Countersign gateway, written from docs/protocol.md and the RFCs that it names."""

from .client import Client
from .errors import ClientError
from .setup import Setup

__all__ = ["Client", "ClientError", "Setup"]
__version__ = "1.0"
