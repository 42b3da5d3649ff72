import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Reads the `Idempotency-Key` of a request that is to run once, whatever the number of its copies. Source:
/// docs/protocol.md, "Idempotent requests".
enum IdempotencyKeyParser {
    /// Bytes of an `Idempotency-Key`.
    private static let lengths = 1...256

    /// Nil if the request changes nothing, or if its signature does not cover the key: such a request is
    /// forwarded without idempotency. A token signs nothing, and any holder of the token could send any key:
    /// there the key counts as sent.
    static func read(
        _ request: Request, from caller: Caller, calling address: () -> ClientAddress,
        at now: @autoclosure () -> Int64
    ) throws(Refusal) -> IdempotentRequest? {
        guard request.names.contains(.idempotencyKey), !request.isSafe else { return nil }
        var value: ByteRange?
        var count = 0
        for place in request.fields.indices where request.fields[place].known == .idempotencyKey {
            if caller.scheme != .token {
                // A scheme that signs no fields protects no key.
                guard case .only = caller.coveredFields, caller.coveredFields.contains(place) else {
                    return nil
                }
            }
            value = request.fields[place].value
            count += 1
        }
        guard count == 1, let value, lengths.contains(value.count) else {
            throw Refusal(
                .malformed, detail: "Idempotency-Key: expected one, of 1 to \(lengths.upperBound) bytes")
        }
        let key = SHA256.digest(request.head.span.extracting(value.range))
        return IdempotentRequest(
            scope: scope(of: caller), from: caller.session == nil ? address() : .unknown, key: bytes(of: key),
            digest: try digest(of: request, expected: caller.body),
            begun: now())
    }

    private static func scope(of caller: Caller) -> IdempotencyScope {
        caller.session.map { .account($0.account.number) } ?? .release(caller.release.id)
    }

    /// What identifies this request: method, target, body and content type, each preceded by its length.
    private static func digest(of request: Request, expected: BodyExpectation) throws(Refusal) -> [UInt8] {
        if case .digests(let sha256?, _) = expected {
            // The gate has compared it with the body, or does while that streams.
            return digest(of: request, body: sha256.span)
        }
        if request.isBodyWhole { return digest(of: request, body: SHA256.digest(request.body.span).span) }
        return try digest(of: request, body: name(of: expected).span)
    }

    private static func digest(of request: Request, body: Span<UInt8>) -> [UInt8] {
        var parts = RequestPartsHash()
        parts.add(request.head.span.extracting(request.method.range))
        parts.add(request.head.span.extracting(request.target.range))
        parts.add(body)
        for field in request.fields where field.known == .contentType {
            parts.add(request.head.span.extracting(field.value.range))
        }
        return bytes(of: parts.finish())
    }

    /// Identifies a streamed body by what its caller signed of it.
    private static func name(of expected: BodyExpectation) throws(Refusal) -> ShortBytes {
        switch expected {
        case .digests(let sha256?, _): return sha256
        case .digests(nil, let sha512?): return sha512
        case .md5, .digests(nil, nil), .inSignature, .unsigned, .leftOpen, .anything:
            throw Refusal(
                .malformed,
                detail:
                    "Idempotency-Key: expected a signed SHA-256 or SHA-512 of a body "
                    + "that is too large to hold"
            )
        }
    }

    private static func bytes(of digest: Digest32) -> [UInt8] {
        digest.span.withUnsafeBufferPointer { Array($0) }
    }
}

/// SHA-256 of parts, each preceded by its length in 8 bytes, big-endian.
private struct RequestPartsHash: ~Copyable {
    private var hash = SHA256()

    mutating func add(_ part: Span<UInt8>) {
        let count = UInt64(part.count).bigEndian
        withUnsafeBytes(of: count) { hash.update(Span(_unsafeBytes: $0)) }
        hash.update(part)
    }

    consuming func finish() -> Digest32 { hash.finish() }
}

extension Request {
    /// Whether the method is safe. Source: RFC 9110 §9.2.1.
    fileprivate var isSafe: Bool {
        matches(method, text: "GET") || matches(method, text: "HEAD") || matches(method, text: "OPTIONS")
            || matches(method, text: "TRACE")
    }
}

extension Gateway {
    /// Forwards the request to the backend once; later copies receive the answer of the first.
    @inline(never)
    func forwardOnce(
        _ keyed: IdempotentRequest, exchange: any Exchange, request: Request, from caller: Caller,
        judgement: Judgement, event: RequestEvent
    ) async throws(Refusal) {
        try await goOn(
            with: keyed, after: idempotency.begin(keyed), exchange: exchange, request: request, from: caller,
            judgement: judgement, event: event)
    }

    /// Forwards the request if it is to run, and repeats its answer otherwise.
    func goOn(
        with keyed: IdempotentRequest, after decision: IdempotencyCoordinator.Decision,
        exchange: any Exchange, request: Request, from caller: Caller, judgement: Judgement,
        event: RequestEvent
    ) async throws(Refusal) {
        switch decision {
        case .again(.whole(let status, let fields, let body)):
            event.isRepeated = true
            var answer = ServerResponse(status: status, fields: fields, body: body).addingUpdateNotice(
                for: caller)
            answer.fields.append(ServerResponse.Field("Countersign-Replayed", value: "true"))
            if caller.release.traffic?.rules.crossOrigin.isEmpty == false {
                // The backend's own, from before the rules.
                answer.fields.removeAll { $0.name.lowercased().hasPrefix("access-control-") }
            }
            answer.fields += event.trafficFields
            await exchange.respond(signed(answer, to: exchange, judgement: judgement))
        case .again(.tooLong(let status)):
            throw Refusal(
                .unavailable,
                detail:
                    "Idempotency-Key: done before with status \(status); its response is not kept",
                previousStatus: status)
        case .ours:
            let recorder = ResponseRecorder(keeping: idempotency.largestKeptBody)
            let result: Result<Void, Refusal>
            do {
                result = .success(
                    try await send(
                        exchange, request: request, from: caller, judgement: judgement, event: event,
                        observer: recorder))
            } catch {
                result = .failure(error)
            }
            await idempotency.end(keyed, with: recorder.outcome)
            try result.get()
        }
    }
}

extension ServerResponse {
    /// From an answer that was kept.
    fileprivate init(status: Int, fields: [StoredAnswer.Field], body: [UInt8]) {
        self.init(status: status, type: "", body: body)
        self.fields = fields.map { Field($0.name, value: String(decoding: $0.value, as: UTF8.self)) }
    }
}

/// Keeps an answer while it passes, up to a limit, and notes whether the backend can have received the
/// request. Confined to one loop.
final class ResponseRecorder: UpstreamResponseObserver {
    private let mostKept: Int
    private var isReached = false
    /// What has arrived of the answer; nil before its head has.
    private var answer: EncodedAnswer?
    private var bodyBytes = 0
    private var isTooLong = false
    private var isWhole = false

    init(keeping mostKept: Int) { self.mostKept = mostKept }

    func requestMayHaveBeenProcessed() { isReached = true }

    func didBegin(status: Int, fields: UpstreamResponseFields) {
        // An answer that comes before the request's end still answers the request.
        isReached = true
        var answer = EncodedAnswer(status: status)
        answer.reserve(ResponseRecorder.usualBytes)
        fields.forEach { answer.append(name: $0, value: $1) }
        self.answer = answer
    }

    /// Of a short answer; with an array's head, what the allocator keeps for the next one.
    private static let usualBytes = 960

    func didRead(_ bytes: Span<UInt8>) {
        guard !isTooLong, let status = answer?.status else { return }
        guard bodyBytes + bytes.count <= mostKept else {
            isTooLong = true
            return answer = EncodedAnswer(tooLongWithStatus: status)
        }
        bodyBytes += bytes.count
        answer?.append(body: bytes)
    }

    func didEnd() { isWhole = true }

    /// For an answer that is too long to keep, only its completion matters, and that is known; the rest adds
    /// nothing.
    var wantsRest: Bool { !isTooLong }

    var outcome: IdempotencyCoordinator.Outcome {
        guard let answer else { return isReached ? .unknown : .notReached }
        return isTooLong || isWhole ? .answered(answer) : .unknown
    }
}
