/// Why an exchange over the network came to nothing. What the server said is no problem of the network's, whatever it said.
package enum NetworkProblem: Error, Sendable, Equatable, CustomStringConvertible {
    /// Nobody listens there.
    case notReached(String)
    /// No TLS came about; with the alert's or OpenSSL's words.
    case noHandshake(String)
    /// The connection ended, or nothing came for ten seconds, before there was a whole answer.
    case cut(String)
    /// What came is not HTTP/1.1, or too much of it.
    case unreadable(String)

    package var description: String {
        switch self {
        case .notReached(let what): "not reached: \(what)"
        case .noHandshake(let what): "no TLS handshake: \(what)"
        case .cut(let what): "cut: \(what)"
        case .unreadable(let what): "not readable: \(what)"
        }
    }
}
