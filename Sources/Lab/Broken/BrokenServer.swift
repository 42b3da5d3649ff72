#if SABOTAGE
    /// A fault that our own server can be told to have, and the attack that has to find it: an attack that never succeeds may be one that
    /// cannot. The row is one where it fails at a server without the fault.
    package struct BrokenServer: Sendable {
        /// As `countersign serve --sabotage` calls it.
        package let fault: String
        package let row: RowName
        package let attack: AttackName
        /// What is wrong with the server, in a few words.
        package let sentence: String

        init(_ fault: String, _ sentence: String, on row: RowName, _ attack: AttackName) {
            (self.fault, self.sentence, self.row, self.attack) = (fault, sentence, row, attack)
        }
    }

    extension BrokenServer {
        /// In the order of the tables.
        package static let all: [BrokenServer] = [
            BrokenServer("nonce-unchecked", "nothing is remembered of what was let in", on: unkeyed, "replay-at-once"),
            BrokenServer(
                "nonce-before-signature", "a nonce is spent before its signature is verified", on: open, "burn-nonce"
            ),
            BrokenServer("path-from-header", "the path that is verified comes from a field", on: open, "tamper-path"),
            BrokenServer(
                "mac-compared-byte-by-byte", "a comparison ends at the first difference", on: open, "mac-timing"),
            BrokenServer(
                "replay-in-memory-only", "a restart forgets what was let in", on: unkeyed, "replay-after-restart"),
            BrokenServer(
                "replay-fails-open", "what the memory cannot vouch for is let in", on: unkeyed, "replay-lost-file"),
            BrokenServer(
                "json-first-wins", "of two JSON members the first is verified", on: "auth-v4+gateway",
                "tamper-ambiguity"),
            BrokenServer("host-unchecked", "any host name is taken for its own", on: open, "tamper-host"),
            BrokenServer("epoch-unchecked", "roots from before a refresh are good for ever", on: open, "old-root"),
            BrokenServer("body-unverified", "the digest is not compared with the body", on: open, "tamper-body"),
            BrokenServer("token-is-bearer", "a session's token is enough", on: open, "stolen-token"),
            // Where nothing but a slow hash is left out: what else a login costs is little beside what a busy machine adds.
            BrokenServer(
                "unknown-account-fast", "unknown names are answered at once", on: "md5+gateway", "enumeration-time"),
            BrokenServer(
                "unknown-account-told", "unknown names are answered otherwise", on: "message-signatures-password",
                "enumeration-content"),
            BrokenServer("guesses-unlimited", "guesses are not counted", on: open, "login-storm"),
            BrokenServer("retired-accepted", "a retired version is let in", on: open, "retired-version"),
            BrokenServer(
                "legacy-always-on", "schemes are taken that no policy names", on: "auth-v1+gateway", "downgrade"),
            BrokenServer("once-forgotten", "a second copy of a wish is done again", on: open, "retry-trap"),
            BrokenServer("identity-from-client", "who calls is told by the caller", on: open, "tamper-header"),
            BrokenServer(
                "identity-from-client", "a stranger on an open route is told by the caller", on: "open-route+gateway",
                "forged-identity"),
            BrokenServer("kept-in-clear", "what is kept of sessions is not sealed", on: open, "database-forge"),
        ]

        /// Where nothing but the server stands in the attacker's way: ours, with TLS taken away.
        private static let open: RowName = "countersign-no-tls"
        /// Where no idempotency key of the client's would hold a second copy back in the place of the replay guard.
        private static let unkeyed: RowName = "form-md5+gateway"
    }
#endif
