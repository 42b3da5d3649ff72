#if os(Linux)
    import CSecret
    import Glibc

    /// The machine's fingerprint reader, by way of fprintd, which holds the prints and compares. Source: fprintd's D-Bus interface
    /// `net.reactivated.Fprint`.
    package struct FprintdReader: FingerprintReader {
        private static let manager = "/net/reactivated/Fprint/Manager"
        private let user: String

        /// `user` is whose fingers count; empty for who runs this program.
        package init(user: String = "") { self.user = user }

        package func verify(within patience: Duration) -> FingerprintVerdict {
            let bus: SystemBus
            do {
                bus = try SystemBus("net.reactivated.Fprint")
            } catch {
                return .unavailable("\(error)")
            }
            do {
                let device = try bus.path(FprintdReader.manager, "net.reactivated.Fprint.Manager", "GetDefaultDevice")
                return try verify(on: bus, device, patience)
            } catch {
                return .unavailable("\(error)")
            }
        }

        private func verify(
            on bus: SystemBus, _ device: String, _ patience: Duration
        ) throws(VaultProblem) -> FingerprintVerdict {
            let interface = "net.reactivated.Fprint.Device"
            try bus.call(device, interface, "Claim", user)
            defer { try? bus.call(device, interface, "Release") }
            // Listening begins before the verifying does: a finger that lies there already answers at once.
            let signals = bus.listen(device, interface, "VerifyStatus")
            try bus.call(device, interface, "VerifyStart", "any")
            defer { try? bus.call(device, interface, "VerifyStop") }
            let end = ContinuousClock.now + patience
            while ContinuousClock.now < end {
                guard let (result, isDone) = signals.next() else {
                    usleep(10_000)
                    continue
                }
                switch result {
                case "verify-match": return .match
                case "verify-no-match": return .noMatch
                default: if isDone { return .unavailable("fprintd: \(result)") }
                }
            }
            return .unavailable("no finger came")
        }
    }
#endif
