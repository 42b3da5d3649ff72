import CountersignMemory

/// The recorded bytes of one TCP connection.
package struct RecordedConnection: Sendable, Equatable {
    /// What the client sent.
    package var client: [UInt8]
    /// What the server sent.
    package var server: [UInt8]

    package init(client: [UInt8] = [], server: [UInt8] = []) {
        self.client = client
        self.server = server
    }
}

/// All bytes that an eavesdropper recorded.
package struct Recording: Sendable {
    /// In the order in which they were opened.
    package var connections: [RecordedConnection]

    package init(_ conversations: [RecordedConnection]) { self.connections = conversations }

    /// The exchanges that are readable HTTP; none of TLS.
    package var exchanges: [RawExchange] { connections.flatMap(\.exchanges) }

    /// Whether a secret is readable: unencoded, percent-encoded or in Base64 of either alphabet, with any
    /// surroundings.
    package func contains(_ secret: String) -> Bool {
        let forms = SecretEncodings(of: Array(secret.utf8))
        return connections.contains { forms.appear(in: $0.client) || forms.appear(in: $0.server) }
    }

    /// For the report: text as text, TLS as its records. A few kilobytes at most.
    package var shown: String {
        var text = ""
        for conversation in connections {
            guard text.utf8.count < 4_000 else { return text + "… and more\n" }
            text += conversation.shown
        }
        return text
    }
}

extension RecordedConnection {
    /// Empty where it is not HTTP. Requests without response are the last ones.
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

    /// Whether the connection begins with a TLS handshake record of version 3. Source: RFC 8446 §5.1.
    package var isTLS: Bool { client.starts(with: [22, 3]) || server.starts(with: [22, 3]) }
}

extension RecordedConnection {
    /// For the report: the messages in order. A few kilobytes at most.
    package var shown: String {
        guard isTLS else { return messages }
        return RecordedConnection.records(client, marked: "→")
            + RecordedConnection.records(server, marked: "←")
    }

    /// Each request with its response; bytes that are no HTTP as received.
    private var messages: String {
        var (requests, responses) = (MessageReader(client), MessageReader(server))
        var text = ""
        for _ in 0..<4 {
            guard let request = try? requests.request() else { break }
            text += RecordedConnection.text(request.bytes, marked: "→")
            guard let response = try? responses.response(to: request.message.method) else { break }
            text += RecordedConnection.text(response.bytes, marked: "←")
        }
        return text + RecordedConnection.text(requests.remainingBytes, marked: "→")
            + RecordedConnection.text(responses.remainingBytes, marked: "←")
    }

    private static func records(_ stream: [UInt8], marked mark: String) -> String {
        let records = TLSRecord.all(in: stream)
        let lines = records.prefix(8).map { "\(mark) TLS \($0.shown)\n" }.joined()
        return lines + (records.count > 8 ? "\(mark) … \(records.count - 8) records more\n" : "")
    }

    /// Control characters are escaped: recorded bytes must not move a terminal's cursor.
    private static func text(_ stream: [UInt8], marked mark: String) -> String {
        var text = "\(mark) "
        for scalar in String(decoding: stream.prefix(640), as: UTF8.self).unicodeScalars {
            switch scalar.value {
            case 0x0A: text += "\n\(mark) "
            case 0x0D: break
            case 0..<0x20, 0x7F..<0xA0: text += "\\u{\(String(scalar.value, radix: 16))}"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return stream.isEmpty
            ? "" : text + (stream.count > 640 ? " … \(stream.count - 640) bytes more\n" : "\n")
    }
}

/// Receives the bytes that pass a relay.
final class TrafficRecorder: Sendable {
    enum Side { case client, server }

    private let recorded = Locked<[(connection: UInt64, conversation: RecordedConnection)]>([])
    /// The limit for one side of a connection. Further bytes are not kept.
    private static let limit = 8 << 20

    var recording: Recording { Recording(recorded.with { $0.map(\.conversation) }) }

    func record(_ bytes: [UInt8], from side: Side, on connection: UInt64) {
        recorded.with { conversations in
            let index = conversations.lastIndex { $0.connection == connection } ?? conversations.count
            if index == conversations.count { conversations.append((connection, RecordedConnection())) }
            switch side {
            case .client where conversations[index].conversation.client.count < Self.limit:
                conversations[index].conversation.client += bytes
            case .server where conversations[index].conversation.server.count < Self.limit:
                conversations[index].conversation.server += bytes
            default: break
            }
        }
    }
}

/// Records what passes on a ``Network`` without being noticed. The lab's own tap records only while nothing
/// is intercepted, since an interception reads the requests itself.
package final class Tap: Sendable {
    private let end: @Sendable () -> Recording

    init(end: @escaping @Sendable () -> Recording) { self.end = end }

    /// Stops the recording and returns it; empty where the recording tool has failed.
    package func stop() -> Recording { end() }
}

/// A TLS record. Source: RFC 5246 §6.2, RFC 8446 §5.1.
struct TLSRecord: Equatable {
    enum Kind: UInt8 {
        case changeCipherSpec = 20
        case alert, handshake
        case applicationData
    }

    var kind: Kind
    var version: UInt16
    var payload: [UInt8]

    /// All complete records at the beginning of a stream.
    static func all(in stream: [UInt8]) -> [TLSRecord] {
        var records: [TLSRecord] = []
        var rest = stream[...]
        while rest.count >= 5 {
            let head = Array(rest.prefix(5))
            let count = Int(head[3]) << 8 | Int(head[4])
            guard let kind = Kind(rawValue: head[0]), rest.count >= 5 + count else { break }
            records.append(
                TLSRecord(
                    kind: kind, version: UInt16(head[1]) << 8 | UInt16(head[2]),
                    payload: Array(rest.dropFirst(5).prefix(count))))
            rest = rest.dropFirst(5 + count)
        }
        return records
    }

    /// What an eavesdropper can read of the record.
    var shown: String {
        let name =
            switch kind {
            case .changeCipherSpec: "change_cipher_spec"
            case .alert: "alert"
            case .handshake: "handshake"
            case .applicationData: "application_data"
            }
        let hex = payload.prefix(16).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(
            separator: " ")
        return "\(name), \(payload.count) bytes: \(hex)\(payload.count > 16 ? " …" : "")"
    }
}
