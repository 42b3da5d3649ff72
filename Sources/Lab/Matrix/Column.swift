/// Attacks of one kind stand in one column of the printed table; its letter is that of the worst of them.
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

    /// For the table's head.
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
