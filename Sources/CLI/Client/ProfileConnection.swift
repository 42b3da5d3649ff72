import CountersignServer
import CountersignTransport
import CountersignTrust
import CountersignWire

/// The way to a profile's server for calls that are signed here: with schemes other than the SDK's own.
struct ProfileConnection: Sendable {
    private let origin: Origin
    private let carrier: any RequestTransport

    init(_ profile: Profile) throws(OperationalError) {
        (origin, _) = try Origin.split(profile.url)
        var options = TransportOptions()
        options.authorities = try profile.authorities()
        let trust = try profile.trust(for: origin)
        do {
            carrier = try HTTPTransport(trust: trust, options: options)
        } catch {
            throw error.operationalError(at: origin)
        }
    }

    /// Sends `draft` in the bytes that were signed, and shows the answer as it comes.
    func exchange(_ draft: Draft, into answer: ResponseOutput) async throws(OperationalError) {
        do {
            let incoming = try await carrier.send(OutgoingRequest(draft, to: origin))
            try answer.write(status: incoming.status, fields: incoming.fields)
            for try await piece in incoming.body { try answer.write(body: piece) }
        } catch let error as TransportError {
            throw error.operationalError(at: origin)
        } catch {
            throw (error as? OperationalError) ?? OperationalError(.failed, message: "\(error)")
        }
    }
}

extension Draft.Field {
    init(_ field: HeaderField) {
        self.init(name: field.name, value: "")
        value = field.value
    }
}

extension OutgoingRequest {
    init(_ draft: Draft, to origin: Origin) {
        self.init(
            draft.method, origin: origin, target: String(decoding: draft.target, as: UTF8.self),
            fields: draft.fields.map { HeaderField($0.name, bytes: $0.value) },
            body: draft.body.isEmpty ? .none : .bytes(draft.body))
        authority = draft.authority
    }
}

extension TransportError {
    /// A sentence for people with the server and the cause.
    func operationalError(at origin: Origin) -> OperationalError {
        switch (cause, fate) {
        case (.machine(let detail), .notSent): OperationalError(.failed, message: detail)
        case (.malformedRequest(let flaw), .notSent):
            OperationalError(.usage, message: "the request cannot be sent: \(flaw)")
        case (.answerTooLarge, _): OperationalError(.failed, message: "\(cause)")
        case (.untrusted(let verdict), .notSent):
            OperationalError(.unreachable, message: "\(origin): not trusted, nothing was sent: \(verdict)")
        case (.tls(let detail), .notSent):
            OperationalError(
                .unreachable, message: "\(origin): no TLS connection, nothing was sent: \(detail)")
        case (_, .notSent): OperationalError(.unreachable, message: "\(origin): cannot be reached: \(cause)")
        case (_, .outcomeUnknown):
            OperationalError(
                .unreachable, message: "\(origin): no answer; whether it was received is not known: \(cause)")
        case (_, .brokenOff):
            OperationalError(.unreachable, message: "\(origin): the answer broke off: \(cause)")
        }
    }
}

extension Origin {
    /// What a draft for this server is sent over.
    var transport: Request.Transport { security == .tls ? .tls : .plain }

    /// A URL taken apart: its origin, and its target in the very bytes that were written.
    package static func split(_ url: String) throws(OperationalError) -> (origin: Origin, target: [UInt8]) {
        let security: Security
        let rest: Substring
        if url.hasPrefix("https://") {
            (security, rest) = (.tls, url.dropFirst(8))
        } else if url.hasPrefix("http://") {
            (security, rest) = (.plaintext, url.dropFirst(7))
        } else {
            throw OperationalError(.usage, message: "URL `\(url)`: expected https://HOST… or http://HOST…")
        }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        guard let (name, port) = HostPort.split(String(rest[..<end])), port != 0 else {
            throw OperationalError(
                .usage,
                message: "URL `\(url)`: expected HOST or HOST:PORT after `//`, without user or password")
        }
        let host: Trust.Host
        do {
            host = try Trust.Host(name)
        } catch {
            throw OperationalError(.usage, message: "URL `\(url)`: \(error)")
        }
        var target = String(rest[end...])
        if !target.hasPrefix("/") { target = "/" + target }
        return (Origin(security, host: host, port: port ?? 0), try checkedTarget(target))
    }

    /// A path with its query, to be sent as it stands; a fragment is the client's own and stays here.
    package static func checkedTarget(_ text: String) throws(OperationalError) -> [UInt8] {
        let bytes = Array(text.utf8.prefix { $0 != UInt8(ascii: "#") })
        guard bytes.first == UInt8(ascii: "/"), bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw OperationalError(
                .usage,
                message: "path `\(text)`: expected visible ASCII beginning with `/`; encode the rest as %XX")
        }
        return bytes
    }
}

extension Draft.Field {
    /// `NAME: VALUE` as `-H` has it.
    static func read(_ text: String) throws(OperationalError) -> Draft.Field {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, parts[0].utf8.allSatisfy(isToken) else {
            throw OperationalError(.usage, message: "-H `\(text)`: expected NAME: VALUE")
        }
        let value = parts[1].drop { $0 == " " || $0 == "\t" }
        guard value.utf8.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }) else {
            throw OperationalError(.usage, message: "-H `\(parts[0])`: the value holds a control character")
        }
        var trimmed = String(value)
        while trimmed.last == " " || trimmed.last == "\t" { trimmed.removeLast() }
        return Draft.Field(name: String(parts[0]), value: trimmed)
    }

    /// A `tchar`. Source: RFC 9110 §5.6.2.
    static func isToken(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}
