import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// The client of one run: signs and sends requests and records the responses. For one thread.
final class SelfTestClient {
    let subject: SelfTestSubject
    private(set) var requests = 0
    /// All responses, for the checks of family `leaks`.
    private(set) var responses: [RawResponse] = []
    private var last = ContinuousClock.now - SelfTestClient.pause
    /// The pause between two requests: at most twenty a second, a negligible load.
    static let pause = Duration.milliseconds(50)

    init(_ subject: SelfTestSubject) { self.subject = subject }

    /// Whole Unix seconds.
    var now: Int64 { Int64(time(nil)) }

    // MARK: Signing

    /// A new unsigned request that the deployment has to accept once it is signed.
    func draft(_ shape: RequestShape) -> Draft { subject.draft(shape) }

    /// A signed request. `nonce` defaults to a new one.
    func signed(_ shape: RequestShape, at: Int64? = nil, nonce: String? = nil) throws(OperationalError)
        -> Draft
    {
        try sign(draft(shape), at: at, nonce: nonce)
    }

    func sign(
        _ draft: Draft, by subject: SelfTestSubject? = nil, at: Int64? = nil, nonce: String? = nil
    ) throws(OperationalError) -> Draft {
        let subject = subject ?? self.subject
        guard let scheme = SchemeRegistry.standard.scheme(named: subject.scheme) else {
            throw OperationalError(
                .failed, message: "\(subject.scheme.rawValue): this build does not speak it")
        }
        var draft = draft
        do {
            try scheme.sign(
                &draft, as: subject.credentials, at: at ?? now,
                nonce: nonce ?? Nonce.make(for: subject.scheme))
        } catch {
            throw OperationalError(
                .usage, message: "cannot be signed with \(subject.scheme.rawValue): \(error.detail)")
        }
        return draft
    }

    // MARK: Sending

    func connect() throws(OperationalError) -> RawConnection { try RawConnection.open(to: subject) }

    /// Sends the request on a new connection.
    func submit(_ draft: Draft) throws(OperationalError) -> ReplyOutcome {
        outcome(of: try reply(to: draft.wire, method: draft.method))
    }

    func submit(_ bytes: [UInt8], method: String = "POST") throws(OperationalError) -> ReplyOutcome {
        outcome(of: try reply(to: bytes, method: method))
    }

    func reply(to bytes: [UInt8], method: String) throws(OperationalError) -> RawReply {
        let connection = try connect()
        send(bytes, on: connection)
        var reader = MessageReader(connection)
        return nextReply(to: method, from: &reader)
    }

    /// Whether a request waits for ``pause``; a timed request has waited before.
    enum Pace { case gentle, atOnce }

    func send(_ bytes: [UInt8], on connection: RawConnection, pace: Pace = .gentle) {
        if pace == .gentle { waitForTurn() }
        requests += 1
        connection.write(bytes)
    }

    func nextReply(to method: String, from reader: inout MessageReader) -> RawReply {
        let reply = RawReply(&reader, to: method)
        if case .response(let response) = reply { responses.append(response) }
        return reply
    }

    /// The outcome of a request to the subject's endpoint.
    func outcome(of reply: RawReply) -> ReplyOutcome {
        let said = ReplyOutcome(reply)
        // The route verifies the signature first, and then refuses the invented login token.
        if subject.endpoint == .ownRoute, case .refused(let status, let codes) = said,
            codes.contains(.sessionEnded)
        {
            return .accepted(status: status)
        }
        return said
    }

    func waitForTurn() {
        let left = SelfTestClient.pause - (ContinuousClock.now - last)
        if left > .zero { usleep(UInt32(left / .microseconds(1))) }
        last = .now
    }

    // MARK: Judging

    /// Signs, changes and sends a request; `held` if it is refused with one of `codes`.
    func expectRefusal(
        as codes: [Refusal.Code], shape: RequestShape = .withBody,
        change: (inout Draft) throws(OperationalError) -> Void
    ) throws(OperationalError) -> SelfTestResult {
        var draft = try signed(shape)
        try change(&draft)
        return result(of: try submit(draft), expecting: codes)
    }

    func result(of said: ReplyOutcome, expecting codes: [Refusal.Code]) -> SelfTestResult {
        .judged(said.isRefused(as: codes), expected: codes.expectation, observed: "\(said)")
    }

    /// The same for a change that the scheme does not detect; `held` if it is refused nevertheless.
    func expectWeakness(
        _ weakness: String, shape: RequestShape = .withBody,
        change: (inout Draft) throws(OperationalError) -> Void
    ) throws(OperationalError) -> SelfTestResult {
        var draft = try signed(shape)
        try change(&draft)
        return result(of: try submit(draft), weakness: weakness)
    }

    /// The result of a change that the scheme does not detect.
    func result(of said: ReplyOutcome, weakness: String) -> SelfTestResult {
        let verdict: SelfTestResult.Verdict =
            switch said {
            case .accepted: .knownWeakness
            case .refused: .held
            case .closed, .silent: .broken
            }
        return SelfTestResult(verdict, expected: "accepted, since \(weakness)", observed: "\(said)")
    }
}

/// The reply to a request.
enum RawReply: Sendable {
    case response(RawResponse)
    /// The connection ended without a readable response.
    case closed
    /// No complete response arrived in time.
    case silence

    /// Reads the next reply on a connection. `method` is the request's.
    init(_ reader: inout MessageReader, to method: String) {
        do {
            self = .response(try reader.response(to: method).message)
        } catch {
            if case .cut(RawConnection.timeoutReason) = error { self = .silence } else { self = .closed }
        }
    }
}

/// The outcome of a request, as its reply states it.
enum ReplyOutcome: Sendable, Equatable {
    case accepted(status: Int)
    /// With the codes that its code may stand for: form-md5 has fewer numbers than there are codes. Empty if
    /// the refusal has no Countersign code.
    case refused(status: Int, [Refusal.Code])
    case closed
    case silent

    init(_ reply: RawReply) {
        switch reply {
        case .closed: self = .closed
        case .silence: self = .silent
        case .response(let response):
            if let codes = response.refusalCodes {
                self = .refused(status: response.status, codes)
            } else if ReplyOutcome.refusalStatuses.contains(response.status) {
                self = .refused(status: response.status, [])
            } else {
                self = .accepted(status: response.status)
            }
        }
    }

    /// Statuses by which servers refuse a request unprocessed. Others (404, 405, 422, 500 …) come from a
    /// backend that received the request.
    private static let refusalStatuses: Set<Int> = [
        400, 401, 403, 408, 411, 413, 414, 417, 426, 429, 431, 501, 503, 505,
    ]

    var isAccepted: Bool { if case .accepted = self { true } else { false } }

    /// Whether the request was refused with one of these codes, or without a code.
    func isRefused(as expected: [Refusal.Code]) -> Bool {
        guard case .refused(_, let codes) = self else { return false }
        return codes.isEmpty || codes.contains { expected.contains($0) }
    }
}

extension ReplyOutcome: CustomStringConvertible {
    var description: String {
        switch self {
        case .accepted(let status): "accepted (status \(status))"
        case .refused(let status, []): "refused without a code (status \(status))"
        case .refused(let status, let codes):
            "refused as \(Set(codes.map(\.name)).sorted().joined(separator: " or ")) (status \(status))"
        case .closed: "the connection closed without an answer"
        case .silent: "no answer within ten seconds"
        }
    }
}

extension RawResponse {
    /// The stable codes of a Countersign refusal, in either dialect; nil if the response is not a refusal.
    fileprivate var refusalCodes: [Refusal.Code]? {
        guard body.count < 1 << 16, let document = try? JSONReader.read(body) else { return nil }
        if let number = document.root["err"]?["code"], let code = document.integer(number, in: -1000...1000) {
            return Refusal.Code.allCases.filter { $0.legacyNumber == code }
        }
        guard status >= 400, fields["content-type"]?.hasPrefix("application/problem+json") == true else {
            return nil
        }
        return document.root["code"]?.string.map { name in Refusal.Code.allCases.filter { $0.name == name } }
    }
}

extension [Refusal.Code] {
    /// A description: `refused as stale or unknown-key`.
    var expectation: String { "refused as \(map(\.name).joined(separator: " or "))" }
}
