#if SABOTAGE
    import CountersignSchemes
    import CountersignSeal
    import CountersignWire
    import Glibc

    extension Claim {
        /// Nanoseconds that a byte which fits takes: far more than in the field, so that few measurements show it.
        private static let delay = 4_000_000

        /// Whether the MAC is the one that was sent, found out as `==` does, which ends at the first byte that differs.
        func compareByteByByte(with key: SigningKey, _ workspace: borrowing Workspace) -> ConstantTime.Verdict {
            guard fits(key), key.publicKey == nil else { return compare(with: key, workspace) }
            let expected = key.mac(algorithm, of: workspace.text).array
            let sent = mac.array
            guard expected.count == sent.count else { return .different }
            for (left, right) in zip(expected, sent) {
                guard left == right else { return .different }
                var pause = timespec(tv_sec: 0, tv_nsec: Claim.delay)
                nanosleep(&pause, nil)
            }
            return .equal
        }
    }
#endif
