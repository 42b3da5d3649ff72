"""The one error type of the package."""


class ClientError(Exception):
    """`code` is stable: a code of docs/protocol.md, "Answers", where the server has said it and signed it,
    or one of

    - `network`: no complete answer came; whether the request arrived is not known
    - `outcome-unknown`: a request with an idempotency key may have arrived, and is not sent again, because
      the server may have forgotten the key
    - `untrusted-server`: the certificate is not one of the pinned; nothing was sent
    - `false-answer`: the answer is not signed, is signed by a key that is not known, or is bound to
      another request
    - `not-signed-in`, `bad-input`, `bad-state`"""

    def __init__(self, code: str, detail: str = "", **members: object):
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code, self.detail, self.members = code, detail, members
