/// One attack carried out on one row, with the steps that led to its verdict.
package struct Cell: Sendable {
    package var verdict: AttackVerdict
    /// One sentence: what the attacker gained, or what stopped the attack; for `–`, why there is nothing to
    /// attack.
    package var how: String
    /// The recorded steps in order. Empty for `–`.
    package var steps: [AttackStep]

    package init(_ verdict: AttackVerdict, how: String, steps: [AttackStep] = []) {
        self.verdict = verdict
        self.how = how
        self.steps = steps
    }
}

/// One recorded action on the stage.
package struct AttackStep: Sendable {
    /// The component that acted.
    package enum Actor: String, Sendable { case victim, attacker, server }

    package var actor: Actor
    /// A sentence without the actor: "sends a login".
    package var action: String
    /// The bytes as text, a few kilobytes at most; nil where there is nothing to show.
    package var shown: String?

    package init(_ actor: Actor, action did: String, showing shown: String? = nil) {
        self.actor = actor
        self.action = did
        self.shown = shown
    }
}

/// The result of one attack on one row.
package enum AttackVerdict: String, Sendable, CaseIterable {
    /// The attack was carried out, and failed.
    case held = "H"
    /// The attack was carried out, and succeeded.
    case fell = "F"
    /// There is nothing to attack, for example no password or no TLS.
    case notApplicable = "–"
}

/// A group of attacks of one kind: a column of the printed table, whose letter is that of the worst attack.
package enum Column: String, Sendable, CaseIterable {
    case eavesdrop
    case manInTheMiddle = "mitm"
    case tamper
    case replay
    case retryTrap = "retry-trap"
    case stolenDatabase = "stolen-database"
    case appKey = "app-key"
    case stolenToken = "stolen-token"
    case offlineGuessing = "offline-guessing"
    case enumeration
    case backup
    case leakedTLSKey = "leaked-tls-key"
    case downgrade
    case retiredVersion = "retired-version"
    case loginStorm = "login-storm"

    /// The heading of the column.
    package var title: String {
        switch self {
        case .eavesdrop: "eavesdrop"
        case .manInTheMiddle: "MITM"
        case .tamper: "tamper"
        case .replay: "replay"
        case .retryTrap: "retry trap"
        case .stolenDatabase: "stolen database"
        case .appKey: "app key"
        case .stolenToken: "stolen token"
        case .offlineGuessing: "guessing"
        case .enumeration: "enumeration"
        case .backup: "device backup"
        case .leakedTLSKey: "leaked TLS key"
        case .downgrade: "downgrade"
        case .retiredVersion: "retired version"
        case .loginStorm: "login storm"
        }
    }
}

/// An attack's name: lower-case words with hyphens, `replay-after-restart`.
package struct AttackName: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    package let description: String

    package init(stringLiteral name: String) { description = name }

    /// Accepts any text; ``AttackCatalogue`` says which attacks exist.
    package init(_ name: String) { description = name }
}

/// A row's name: the scheme, and how it is served: `md5`, `md5+gateway`, `countersign-no-tls`.
package struct RowName: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    package let description: String

    package init(stringLiteral name: String) { description = name }

    /// Accepts any text; ``RowCatalogue`` says which rows exist.
    package init(_ name: String) { description = name }
}
