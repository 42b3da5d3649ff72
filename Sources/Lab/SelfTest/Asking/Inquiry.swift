import CountersignSchemes
import CountersignSeal
import CountersignWire
import Glibc

/// One run: signs, sends and remembers what came back. For one thread.
final class Inquiry {
    let subject: Subject
    private(set) var requests = 0
    /// All answers, for what none of them may say.
    private(set) var responses: [RawResponse] = []
    private var last = ContinuousClock.now - Inquiry.pause
    /// Between two requests: at most twenty a second, which no deployment notices.
    static let pause = Duration.milliseconds(50)

    init(_ subject: Subject) { self.subject = subject }

    /// Whole Unix seconds.
    var now: Int64 { Int64(time(nil)) }

    // MARK: Signing

    /// A new call that is to be accepted, not signed yet.
    func draft(_ shape: Shape) -> Draft { subject.draft(shape) }

    /// Signed as a client does it. `nonce` is a new one where none is given.
    func signed(_ shape: Shape, at: Int64? = nil, nonce: String? = nil) throws(Fault) -> Draft {
        try sign(draft(shape), at: at, nonce: nonce)
    }

    func sign(
        _ draft: Draft, by subject: Subject? = nil, at: Int64? = nil, nonce: String? = nil
    ) throws(Fault) -> Draft {
        let subject = subject ?? self.subject
        guard let scheme = Registry.standard.scheme(named: subject.scheme) else {
            throw Fault(.failed, "\(subject.scheme.rawValue): this build does not speak it")
        }
        var draft = draft
        do throws(Refusal) {
            try scheme.sign(
                &draft, as: subject.credentials, at: at ?? now, nonce: nonce ?? Nonce.make(for: subject.scheme))
        } catch {
            throw Fault(.usage, "cannot be signed with \(subject.scheme.rawValue): \(error.detail)")
        }
        return draft
    }

    // MARK: Sending

    func connect() throws(Fault) -> Link { try Link.open(to: subject) }

    /// On a connection of its own.
    func ask(_ draft: Draft) throws(Fault) -> Said { said(try reply(to: draft.wire, draft.method)) }

    func ask(_ bytes: [UInt8], _ method: String = "POST") throws(Fault) -> Said { said(try reply(to: bytes, method)) }

    func reply(to bytes: [UInt8], _ method: String) throws(Fault) -> Reply {
        let connection = try connect()
        send(bytes, on: connection)
        var reader = MessageReader(connection)
        return next(to: method, from: &reader)
    }

    /// Whether a request waits its turn; what is timed has waited before.
    enum Pace { case gentle, atOnce }

    func send(_ bytes: [UInt8], on connection: Link, _ pace: Pace = .gentle) {
        if pace == .gentle { wait() }
        requests += 1
        connection.write(bytes)
    }

    func next(to method: String, from reader: inout MessageReader) -> Reply {
        let reply = Reply(&reader, to: method)
        if case .response(let response) = reply { responses.append(response) }
        return reply
    }

    /// What it says of a call to the place that the subject names.
    func said(_ reply: Reply) -> Said {
        let said = Said(reply)
        // The route has judged the signature, and found nothing behind the login token that it was sent.
        if subject.place == .ownRoute, case .refused(let status, let codes) = said, codes.contains(.sessionEnded) {
            return .accepted(status: status)
        }
        return said
    }

    func wait() {
        let left = Inquiry.pause - (ContinuousClock.now - last)
        if left > .zero { usleep(UInt32(left / .microseconds(1))) }
        last = .now
    }

    // MARK: Judging

    /// Signs, changes, sends; held where it is refused as one of `codes`.
    func refuses(
        _ codes: [Refusal.Code], _ shape: Shape = .withBody, change: (inout Draft) throws(Fault) -> Void
    ) throws(Fault) -> Finding {
        var draft = try signed(shape)
        try change(&draft)
        return judged(try ask(draft), codes)
    }

    func judged(_ said: Said, _ codes: [Refusal.Code]) -> Finding {
        .judged(said.isRefused(as: codes), expected: codes.expectation, came: "\(said)")
    }

    /// The same where the scheme leaves the change open: refused is better than it promises.
    func leavesOpen(
        _ weakness: String, _ shape: Shape = .withBody, change: (inout Draft) throws(Fault) -> Void
    ) throws(Fault) -> Finding {
        var draft = try signed(shape)
        try change(&draft)
        return open(try ask(draft), weakness)
    }

    /// What becomes of a change that the scheme leaves open.
    func open(_ said: Said, _ weakness: String) -> Finding {
        let verdict: Finding.Verdict =
            switch said {
            case .accepted: .knownWeakness
            case .refused: .held
            case .closed, .silent: .broken
            }
        return Finding(verdict, expected: "accepted, since \(weakness)", came: "\(said)")
    }
}
