/// The names that a registration binds client and server to, and that a login must state again. Source: RFC
/// 9807 §4.
package struct Parties: Sendable {
    /// The account, as both sides write its name.
    package var client: PartyIdentity
    /// The deployment, or the app of it.
    package var server: PartyIdentity

    package init(client: PartyIdentity, server: PartyIdentity) {
        self.client = client
        self.server = server
    }
}

/// The identity of one party.
package enum PartyIdentity: Sendable {
    /// The party has no name; its public key identifies it.
    case publicKey
    case name(Name)

    /// 1 to 65,535 bytes, compared byte by byte; the caller has normalized them.
    package struct Name: Sendable, Equatable {
        let bytes: [UInt8]

        package init?(_ bytes: [UInt8]) {
            guard (1...Int(UInt16.max)).contains(bytes.count) else { return nil }
            self.bytes = bytes
        }
    }

    func bytes(orKey publicKey: [UInt8]) -> [UInt8] {
        switch self {
        case .publicKey: publicKey
        case .name(let name): name.bytes
        }
    }
}

/// The values besides OPAQUE's own that both sides of a login must agree on. They are hashed into the
/// transcript and never sent. Source: RFC 9807 §6.4.2.1.
package struct LoginContext: Sendable, Equatable {
    let bytes: [UInt8]

    /// Nil for more than 65,535 bytes.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count <= Int(UInt16.max) else { return nil }
        self.bytes = bytes
    }

    /// No context besides OPAQUE's own values.
    package static let empty = LoginContext(known: [])

    private init(known bytes: [UInt8]) { self.bytes = bytes }
}
