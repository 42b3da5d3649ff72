extension LabRecord {
    /// An attack's name: lower-case words with hyphens, `replay-after-restart`.
    package struct AttackName: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
        package let description: String

        package init(stringLiteral name: String) { description = name }

        /// Accepts any text; the lab says which attacks exist.
        package init(_ name: String) { description = name }
    }

    /// A row's name: the scheme, and how it is served: `md5`, `md5+gateway`, `countersign-no-tls`.
    package struct RowName: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
        package let description: String

        package init(stringLiteral name: String) { description = name }

        /// Accepts any text; the lab says which rows exist.
        package init(_ name: String) { description = name }

        /// Whether the row is Countersign's own protocol, with or without TLS.
        package var isOurs: Bool { description.hasPrefix("countersign") }
    }

    /// A group of attacks of one kind: a column of the printed table, whose letter is that of the worst
    /// attack.
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

    /// The letter in a field of the printed table, the worst first: a column has the letter of its worst
    /// attack.
    package enum Mark: String, Sendable, CaseIterable {
        case fell = "F"
        /// A failure of the lab. It is worse than H: an attack that was not carried out proves nothing.
        case notStaged = "!"
        case held = "H"
        case notApplicable = "–"

        /// Nil where `marks` is empty.
        package static func worst(_ marks: some Sequence<Mark>) -> Mark? {
            let marks = Set(marks)
            return allCases.first { marks.contains($0) }
        }

        /// The explanation in the legend.
        package var meaning: String {
            switch self {
            case .fell: "fell: the attacker reached the goal and proved it"
            case .notStaged: "could not be staged: an error of the lab's, and no verdict"
            case .held: "held: the attack was carried out, and failed"
            case .notApplicable: "does not apply: there is nothing to attack"
            }
        }

        /// The mark as a word or two.
        package var word: String {
            switch self {
            case .fell: "fell"
            case .notStaged: "not staged"
            case .held: "held"
            case .notApplicable: "does not apply"
            }
        }
    }
}
