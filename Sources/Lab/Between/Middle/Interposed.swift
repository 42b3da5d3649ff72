import Synchronization

/// What a man in the middle has come across.
package struct Interposed: Sendable {
    /// TCP connections that came to him.
    package var connections = 0
    /// Those on which TLS came about: the victim took his certificate. Zero in plain HTTP.
    package var handshakes = 0
    /// How the others ended, each in the words of the victim's alert (`alert unknown CA`), and those that ended after the handshake before
    /// a byte of a request.
    package var brokenOff: [String] = []
    /// Requests that he has read.
    package var requests = 0
    /// What he has read, and what the server said to what he made of it; as it was, not as he sent it on.
    package var exchanges: [RawExchange] = []
}

/// Where it is counted.
final class Ledger: Sendable {
    private let entries = Mutex(Interposed())

    var interposed: Interposed { entries.withLock { $0 } }

    func note(_ change: (inout Interposed) -> Void) { entries.withLock { change(&$0) } }
}
