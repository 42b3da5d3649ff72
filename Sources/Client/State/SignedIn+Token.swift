import CountersignHandshake
import CountersignSeal
import CountersignWire

extension SignedIn {
    /// What a request went under: tells whether another took its place meanwhile.
    enum Token: Sendable, Hashable {
        case session(SessionToken)
        /// SHA-256 of the token.
        case bearer([UInt8])
    }

    var token: Token {
        switch session {
        case .device(let session): return .session(session.token)
        case .bearer(let session):
            let digest = session.token.withExposedBytes { SHA256.digest($0) }
            return .bearer(digest.indices.map { digest[$0] })
        }
    }

    /// Whether this login is over, where its authority says so to a request under `used`. Of a device's session any epoch speaks for
    /// all; of bearer tokens, which are not told apart from strangers' once they are old, each speaks for itself.
    func isOver(with used: Token) -> Bool {
        switch (session, used) {
        case (.device(let session), .session(let token)): session.id == token.id
        case (.bearer, .bearer): token == used
        case (.device, .bearer), (.bearer, .session): false
        }
    }
}
