import CountersignMemory
import CountersignSchemes
import CountersignTransport

/// How long the server keeps idempotency keys, as far as the client knows. The server may execute a later
/// copy again, so the client sends none by itself. Source: docs/protocol.md, "Idempotent requests".
final class KeyLifetime: Sendable {
    private let told = Locked<Int?>(nil)

    /// In seconds. Until the server has stated a time, this is the shortest time that a server may have.
    var seconds: Int { told.with { $0 } ?? KeyRetention.lowest }

    /// Accepts the field only from a response over TLS: otherwise another party could state a longer time.
    func note(_ fields: [HeaderField], over security: Origin.Security) {
        let stated = fields.filter { $0.isNamed(KeyRetention.fieldName.lowercased()) }
        guard security == .tls, stated.count == 1, let seconds = KeyRetention.seconds(stated[0].value) else {
            return
        }
        told.with { $0 = seconds }
    }
}

/// When the first copy of a request was sent, by two clocks: one may stand still while the device sleeps,
/// and the other can be set.
struct SendingTime: Sendable {
    private let wall: Int64
    private let monotonic: UInt64

    init(_ clock: DeviceClock) { (wall, monotonic) = (clock.wall(), clock.monotonic()) }

    /// Whether `seconds` have passed by either clock.
    func isOver(after seconds: Int, by clock: DeviceClock) -> Bool {
        clock.wall() - wall >= Int64(seconds)
            || clock.monotonic() &- monotonic >= UInt64(seconds) * 1_000_000_000
    }
}
