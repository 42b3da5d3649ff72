/// One way to do harm. Each is a file of its own, and really done: it succeeds only by showing what it got.
package protocol Attack: Sendable {
    var name: AttackName { get }
    /// Where it stands in the printed table.
    var column: Column { get }
    /// What the attacker does, in one sentence.
    var sentence: String { get }

    /// Why there is nothing to attack in this row; nil where there is. May look at no more than what the row is.
    func exemption(of row: RowProfile) -> String?

    /// Attacks. Throws where the cell could not be staged: where the victim cannot do what he does every day, where a fault that was to
    /// be caused did not happen.
    func run(on stage: Stage) async throws -> Outcome
}

/// How an attack ended, as it was seen on the stage.
package enum Outcome: Sendable {
    /// The attacker has shown that he has what he wanted. With a sentence that says what, and by what.
    case succeeded(String)
    /// Everything was tried, and refused. With a sentence that says what stopped him.
    case failed(String)
}

/// All attacks, in the order of the table.
package enum AttackCatalogue {
    package static let all: [any Attack] = [
        Eavesdrop(), TrustedMiddle(),
        TamperMethod(), TamperPath(), TamperQuery(), TamperHeader(), TamperBody(), ForgedIdentity(), TamperHost(),
        TamperAmbiguity(),
        MACTiming(),
        ReplayAtOnce(), ReplayAfterRestart(), ReplaySecondNode(), ReplayLostFile(), ReplayNewTimestamp(), BurnNonce(),
        RetryTrap(),
        DatabaseSignIn(), DatabaseForge(),
        AppKeyTheft(),
        StolenToken(), OldRoot(),
        OfflineGuessing(),
        EnumerationContent(), EnumerationTime(),
        Backup(),
        LeakedTLSKey(), Downgrade(), RetiredVersion(), LoginStorm(),
    ]
}
