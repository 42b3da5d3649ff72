import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignVault
import CountersignWire

/// Checks that a client's parts fit together.
enum CompositionCheck {
    /// A key that is stored with the session needs no presence.
    static func gate(_ options: CountersignOptions) -> ClientStateMachine.Gate {
        switch (options.deviceKey, options.gate) {
        case (.boundToPresence, .atLaunch): .closed
        case (.boundToPresence, .none), (.kept, _): .open
        }
    }

    /// Refuses options under which the client could not authenticate the server.
    static func checkProof(
        of origin: Origin, by trust: Trust, release: ReleaseKey, options: CountersignOptions
    ) throws(CountersignError) {
        guard
            release.authorityKey != nil || origin.security == .plaintext
                || trust.isPinned(origin.host)
                || options.missingAuthorityKey == .leavesRefusalsUnverified
        else {
            throw .misuse(
                """
                release key: the authority key is missing, and the trust pins no certificate of \
                \(origin.host): expected the `authority_key` that `countersign release add` printed; \
                nothing that the server says could be verified
                """)
        }
        guard
            options.passwordLogin == .never
                || origin.security == .tls && trust.isPinned(origin.host)
        else {
            throw .misuse(
                "passwordLogin: the trust pins no certificate of \(origin.host), "
                    + "and a password goes to no other"
            )
        }
    }

    /// Refuses a trust whose rules name other hosts only: the app's own server would go by the rule for all
    /// others, and its certificate would not be pinned, without any sign of it.
    static func checkCoverage(of trust: Trust, for origin: Origin) throws(CountersignError) {
        guard origin.security == .tls, !trust.rules.isEmpty, trust.rules(for: origin.host).isEmpty else {
            return
        }
        let patterns = trust.rules.map { "`\($0.pattern)`" }.joined(separator: ", ")
        throw .misuse(
            "trust: no rule covers \(origin.host), the host of the base URL; the rules are for \(patterns): "
                + "expected a rule for it, `.system` among them where it is not pinned")
    }
}

extension DeviceKeyPolicy {
    init(_ options: CountersignOptions) {
        switch options.deviceKeyStorage {
        case .hardwareWhereThereIsOne:
            self.init(.hardwareWhereThereIsOne, hardware: options.deviceKeyHardware)
        case .hardwareOnly: self.init(.hardwareOnly, hardware: options.deviceKeyHardware)
        // Keys that were made in hardware before still sign until the next login.
        case .softwareOnly: self.init(.softwareOnly, hardware: options.deviceKeyHardware)
        }
    }
}

/// A device's clocks, as the client module reads them.
struct DeviceTime: ClientTime {
    let clock: DeviceClock

    var now: Int64 { clock.wall() }

    var milliseconds: Int64 { Int64(clock.monotonic() / 1_000_000) }
}

extension DeviceClock {
    /// The time since `start`, a reading of the monotonic clock.
    func elapsed(since start: UInt64) -> Duration { .nanoseconds(Int64(monotonic() - start)) }
}
