import CountersignClient
import CountersignWire
import Glibc

/// The client's way to its server: libcurl, with the profile's pins.
struct CurlTransport: Transport {
    let origin: Origin
    let trust: Transfer.Trust
    /// Where answers are shown as they come; nil for those that only the client reads.
    var shown: ShownAnswer?
    /// Milliseconds for an exchange that only the client reads. Four of them may be made with the vault's lease in hand, for which
    /// others wait two minutes: who trickles his answers must not make them give up.
    var patience = 20_000

    nonisolated(nonsending) func send(_ draft: Draft) async throws(TransportProblem) -> Response {
        guard let shown else {
            let whole = WholeAnswer()
            let status = try run(draft, .milliseconds(patience), whole.receiver)
            return whole.response(status)
        }
        let answer = shown.begin()
        let status = try run(
            draft, .whileItMoves,
            Transfer.Receiver(
                head: { (bytes) throws(Fault) in try answer.take(head: bytes) },
                body: { (bytes) throws(Fault) in try answer.take(body: bytes) }))
        return shown.end(answer, status)
    }

    private func run(
        _ draft: Draft, _ patience: Transfer.Patience, _ receiver: Transfer.Receiver
    ) throws(TransportProblem) -> Int {
        do {
            return try Transfer.run(draft, to: origin, trust: trust, patience: patience, into: receiver)
        } catch {
            let fate: TransportProblem.Fate =
                switch error {
                case .notSent: .notSent
                case .noAnswer: .notKnown
                case .brokenOff: .brokenOff
                }
            throw TransportProblem(fate, error.fault.message)
        }
    }
}

/// An answer of the authority's own, kept whole: they are short.
private final class WholeAnswer {
    private static let most = 1 << 20
    private var head: [UInt8] = []
    private var body: [UInt8] = []

    var receiver: Transfer.Receiver {
        Transfer.Receiver(
            head: { (bytes) throws(Fault) in self.head = bytes },
            body: { (bytes) throws(Fault) in
                guard self.body.count + bytes.count <= WholeAnswer.most else {
                    throw Fault(.failed, "the answer is over \(WholeAnswer.most) bytes")
                }
                self.body += bytes
            })
    }

    func response(_ status: Int) -> Response { Response(status: status, fields: AnswerHead.fields(head), body: body) }
}

/// What `request` prints. Each copy of a request that is sent begins another answer; only the last one is shown.
///
/// Safe to share: one task uses it, and the command's thread reads it when that is over.
final class ShownAnswer: @unchecked Sendable {
    private let make: @Sendable () -> Answer
    private(set) var last: (answer: Answer, status: Int)?

    init(_ make: @escaping @Sendable () -> Answer) { self.make = make }

    func begin() -> Answer { make() }

    func end(_ answer: Answer, _ status: Int) -> Response {
        last = (answer, status)
        if let response = answer.response(status) { return response }
        var response = Response(status: status, fields: [], body: [])
        response.message.isBodyWhole = false
        return response
    }
}

/// The device's clocks.
struct DeviceTime: ClientTime {
    var now: Int64 { Int64(time(nil)) }

    var milliseconds: Int64 {
        var moment = timespec()
        clock_gettime(CLOCK_MONOTONIC, &moment)
        return Int64(moment.tv_sec) * 1000 + Int64(moment.tv_nsec) / 1_000_000
    }
}
