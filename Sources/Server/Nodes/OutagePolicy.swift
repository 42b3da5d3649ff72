import CountersignWire

/// How long a node of several judges requests by what it has in memory, after it has last heard the store.
package enum OutagePolicy: Sendable, Equatable {
    /// As long as the connection to the store is not known to be lost, and at most a second.
    case closed
    case grace(seconds: Int)

    static let mostSeconds = 300

    init?(_ text: String) {
        if text == "closed" {
            self = .closed
            return
        }
        guard text.hasPrefix("grace:"),
            let seconds = Setting.wholeNumber(String(text.dropFirst(6)), in: 1...OutagePolicy.mostSeconds)
        else { return nil }
        self = .grace(seconds: seconds)
    }

    var text: String {
        switch self {
        case .closed: "closed"
        case .grace(let seconds): "grace:\(seconds)"
        }
    }

    /// The node's lease, in milliseconds: the others wait as long for a node that is silent.
    var lease: Int64 {
        switch self {
        case .closed: 1_000
        case .grace(let seconds): Int64(seconds) * 1_000
        }
    }
}
