/// One attack, carried out on a stage. It succeeds only by showing what it gained: money, a session or a
/// password.
package protocol Attack: Sendable {
    var name: AttackName { get }
    /// The column of the printed table that the attack belongs to.
    var column: Column { get }
    /// What the attacker does, in one sentence.
    var sentence: String { get }

    /// Why the row has nothing to attack; nil where it has. The answer depends on the profile alone.
    func exemption(of row: RowProfile) -> String?

    /// Carries out the attack. Throws where the cell could not be staged: the victim cannot use the app, or a
    /// fault that the attack needs did not occur.
    func run(on stage: Stage) async throws -> AttackOutcome
}

/// How an attack ended.
package enum AttackOutcome: Sendable {
    /// The attack reached its aim. The sentence says what the attacker gained, and how.
    case succeeded(String)
    /// Every attempt was refused. The sentence says what stopped the attack.
    case failed(String)
}

/// All attacks, in the order of the table.
package enum AttackCatalogue {
    package static let all: [any Attack] = [
        EavesdropAttack(), ManInTheMiddleAttack(),
        TamperMethodAttack(), TamperPathAttack(), TamperQueryAttack(), TamperHeaderAttack(),
        TamperBodyAttack(), ForgedIdentityAttack(), TamperHostAttack(),
        TamperAmbiguityAttack(),
        MACTimingAttack(),
        ReplayAtOnceAttack(), ReplayAfterRestartAttack(), ReplaySecondNodeAttack(), ReplayLostFileAttack(),
        ReplayNewTimestampAttack(), BurnNonceAttack(),
        RetryTrapAttack(),
        DatabaseSignInAttack(), DatabaseForgeAttack(),
        AppKeyAttack(),
        StolenTokenAttack(), OldRootAttack(),
        OfflineGuessingAttack(),
        EnumerationContentAttack(), EnumerationTimeAttack(),
        BackupAttack(),
        LeakedTLSKeyAttack(), DowngradeAttack(), RetiredVersionAttack(), LoginStormAttack(),
    ]
}
