/// The bytes of one TCP connection, as they passed.
package struct Conversation: Sendable, Equatable {
    /// What the client sent.
    package var client: [UInt8]
    /// What the server sent.
    package var server: [UInt8]

    package init(client: [UInt8] = [], server: [UInt8] = []) {
        self.client = client
        self.server = server
    }
}

/// What an eavesdropper has in the end.
package struct Recording: Sendable {
    /// In the order in which they began.
    package var conversations: [Conversation]

    package init(_ conversations: [Conversation]) { self.conversations = conversations }

    /// What can be read as HTTP; nothing of TLS can.
    package var exchanges: [RawExchange] { conversations.flatMap(\.exchanges) }

    /// Whether a secret can be read in it: as it is, percent-encoded, or in Base64 of either alphabet, whatever surrounds it there.
    package func contains(_ secret: String) -> Bool {
        let forms = Disguises(of: Array(secret.utf8))
        return conversations.contains { forms.show(in: $0.client) || forms.show(in: $0.server) }
    }

    /// For people: text as text, TLS as its records. A few kilobytes at most.
    package var shown: String {
        var text = ""
        for conversation in conversations {
            guard text.utf8.count < 4_000 else { return text + "… and more\n" }
            text += conversation.shown
        }
        return text
    }
}

extension Conversation {
    /// Empty where it is not HTTP. Requests that were not answered are the last ones.
    package var exchanges: [RawExchange] {
        guard !isTLS else { return [] }
        var (requests, responses) = (MessageReader(client), MessageReader(server))
        var found: [RawExchange] = []
        while let request = try? requests.request().message {
            let response = try? responses.response(to: request.method).message
            found.append(RawExchange(request: request, response: response))
        }
        return found
    }

    /// Whether it begins as TLS does: a handshake record of version 3. Source: RFC 8446 §5.1.
    package var isTLS: Bool { client.starts(with: [22, 3]) || server.starts(with: [22, 3]) }
}
