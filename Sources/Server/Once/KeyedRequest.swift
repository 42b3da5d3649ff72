import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A request that is to be done once, however many copies of it come. Source: docs/protocol.md, "Doing once".
enum KeyedRequest {
    /// Bytes of an `Idempotency-Key`.
    private static let lengths = 1...256

    /// Nil where it changes nothing, and where no signature vouches for a key: then it is forwarded as ever.
    /// Of a token alone nothing is signed, and whoever has it could send any key: it counts as it was sent.
    static func read(
        _ request: Request, from caller: Caller, calling address: () -> ClientAddress, at now: Int64
    ) throws(Refusal) -> IdempotentRequest? {
        guard request.names.contains(.idempotencyKey), !request.isSafe else { return nil }
        let places = request.fields.indices.filter { request.fields[$0].known == .idempotencyKey }
        if caller.scheme != .token {
            // A scheme that signs no fields vouches for none of them.
            guard case .only = caller.coveredFields, places.allSatisfy(caller.coveredFields.contains) else {
                return nil
            }
        }
        guard places.count == 1, lengths.contains(request.fields[places[0]].value.count) else {
            throw Refusal(.malformed, "Idempotency-Key: expected one, of 1 to \(lengths.upperBound) bytes")
        }
        let key = SHA256.digest(request.head.span.extracting(request.fields[places[0]].value.range))
        return IdempotentRequest(
            scope: scope(of: caller), from: caller.session == nil ? address() : .unknown, key: bytes(of: key),
            digest: try digest(of: request, caller.body),
            begun: now)
    }

    private static func scope(of caller: Caller) -> IdempotencyScope {
        caller.session.map { .account($0.account.number) } ?? .release(caller.release.id)
    }

    /// What makes it this request and no other: method, target, body and content type, each preceded by its length.
    private static func digest(of request: Request, _ expected: BodyExpectation) throws(Refusal) -> [UInt8] {
        var parts = [request.method, request.target].map { Array(request.head[$0.range]) }
        parts.append(request.isBodyWhole ? bytes(of: SHA256.digest(request.body.span)) : try name(of: expected))
        for field in request.fields where field.known == .contentType {
            parts.append(Array(request.head[field.value.range]))
        }
        var text: [UInt8] = []
        for part in parts {
            text += (0..<8).map { UInt8(truncatingIfNeeded: UInt64(part.count) >> (56 - 8 * UInt64($0))) } + part
        }
        return bytes(of: SHA256.digest(text.span))
    }

    /// A body that streams, by what its caller signed of it.
    private static func name(of expected: BodyExpectation) throws(Refusal) -> [UInt8] {
        switch expected {
        case .digests(let sha256?, _): return sha256.array
        case .digests(nil, let sha512?): return sha512.array
        case .md5, .digests(nil, nil), .inSignature, .unsigned, .leftOpen, .anything:
            throw Refusal(
                .malformed, "Idempotency-Key: expected a signed SHA-256 or SHA-512 of a body that is too large to hold")
        }
    }

    private static func bytes(of digest: Digest32) -> [UInt8] { digest.indices.map { digest[$0] } }
}

extension Request {
    /// Whether it asks for nothing to be changed. Source: RFC 9110 §9.2.1.
    fileprivate var isSafe: Bool {
        matches(method, "GET") || matches(method, "HEAD") || matches(method, "OPTIONS") || matches(method, "TRACE")
    }
}
