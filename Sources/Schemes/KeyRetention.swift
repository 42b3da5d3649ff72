/// How many seconds a server keeps the outcome of a request with an `Idempotency-Key`, as it tells clients.
/// The server may execute a later copy again. Source: docs/protocol.md, "Idempotent requests".
package enum KeyRetention {
    /// The response field that states it.
    package static let fieldName = "Idempotency-Keys-Kept"
    /// The time that a client assumes until the server has stated one. No server keeps keys for a shorter
    /// time.
    package static let lowest = 600
    /// No server keeps keys for longer.
    package static let highest = 86_400

    /// Parses the field's value; nil for a value that no server sends.
    package static func seconds(_ value: some Collection<UInt8>) -> Int? {
        guard (1...5).contains(value.count), value.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        let seconds = value.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        return (lowest...highest).contains(seconds) ? seconds : nil
    }
}
