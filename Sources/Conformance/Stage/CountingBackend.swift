import CountersignLab
import CountersignWire
import Synchronization

/// A backend that says how often a target was called, by which method and for which account.
final class CountingBackend: Sendable {
    private final class Counts: Sendable {
        let byTarget = Mutex<[String: Int]>([:])
    }

    private let counts: Counts
    private let server: LocalServer

    /// Listens from now on.
    init() throws(StageFault) {
        let counts = Counts()
        self.counts = counts
        server = try LocalServer { (request) throws(StageFault) in
            let count = counts.byTarget.withLock { counts in
                counts[request.target, default: 0] += 1
                return counts[request.target] ?? 0
            }
            return RawResponse(json: [
                "method": .string(request.method), "target": .string(request.target),
                "count": .integer(Int64(count)),
                "account": .optional(request.fields["countersign-account"]),
                "body": .string(Base64.encode(request.body.span, .url)),
            ])
        }
    }

    var port: UInt16 { server.port }

    func count(of target: String) -> Int { counts.byTarget.withLock { $0[target] ?? 0 } }

    func stop() { server.stop() }
}
