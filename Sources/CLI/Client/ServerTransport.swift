import CountersignClient
import CountersignTransport
import CountersignWire

/// The client's way to its server.
struct ServerTransport: CountersignClient.Transport {
    let line: ServerLine
    /// Where answers are shown as they come; nil for those that only the client reads.
    var shown: ShownAnswer?

    /// For an exchange that only the client reads. Four of them may be made with the vault's lease in hand, for which others
    /// wait two minutes: who trickles his answers must not make them give up.
    static let patience = Duration.seconds(20)

    /// An answer of the authority's own is kept whole: they are short.
    private static let longestAnswer = 1 << 20

    nonisolated(nonsending) func send(_ draft: Draft) async throws(TransportProblem) -> Response {
        let incoming: IncomingResponse
        do {
            incoming = try await line.send(draft)
        } catch {
            throw TransportProblem(error, line.origin)
        }
        if let shown { return try await show(incoming, shown) }
        do {
            let body = try await incoming.body.collect(upTo: ServerTransport.longestAnswer)
            return Response(status: incoming.status, fields: incoming.fields.map(Draft.Field.init), body: body)
        } catch {
            throw TransportProblem(error, line.origin)
        }
    }

    nonisolated(nonsending) private func show(
        _ incoming: IncomingResponse, _ shown: ShownAnswer
    ) async throws(TransportProblem) -> Response {
        let answer = shown.begin()
        do {
            try await answer.take(incoming, from: line.origin)
        } catch {
            throw TransportProblem(.brokenOff, error.message)
        }
        return shown.end(answer)
    }
}

extension TransportProblem {
    fileprivate init(_ error: TransportError, _ origin: Origin) {
        let fate: Fate =
            switch error.fate {
            case .notSent: .notSent
            case .outcomeUnknown: .notKnown
            case .brokenOff: .brokenOff
            }
        self.init(fate, error.fault(origin).message, underlying: error)
    }
}

extension Draft.Field {
    init(_ field: HTTPField) {
        self.init(field.name, "")
        value = field.value
    }
}

/// What `request` prints. Each copy of a request that is sent begins another answer; only the last one is shown.
///
/// Safe to share: one task uses it, and the command's thread reads it when that is over.
final class ShownAnswer: @unchecked Sendable {
    private let make: @Sendable () -> Answer
    private(set) var last: Answer?

    init(_ make: @escaping @Sendable () -> Answer) { self.make = make }

    func begin() -> Answer { make() }

    func end(_ answer: Answer) -> Response {
        last = answer
        if let response = answer.response { return response }
        var response = Response(status: answer.status, fields: [], body: [])
        response.message.isBodyWhole = false
        return response
    }
}

/// The device's clocks.
struct DeviceTime: ClientTime {
    private let clock = DeviceClock.system

    var now: Int64 { clock.wall() }
    var milliseconds: Int64 { Int64(clock.monotonic() / 1_000_000) }
}
