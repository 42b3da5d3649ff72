/// For how many seconds a server keeps the outcome of a request with an `Idempotency-Key`, as it tells
/// clients. A copy that comes later may be executed once more. Source: docs/protocol.md, "Idempotent
/// requests".
package enum KeyRetention {
    /// The field of responses that states it.
    package static let fieldName = "Idempotency-Keys-Kept"
    /// What a client assumes that has not been told. No server keeps keys for a shorter time.
    package static let lowest = 600
    /// No server keeps keys for longer.
    package static let highest = 86_400

    /// From the field's value; nil for anything that no server sends.
    package static func seconds(_ value: some Collection<UInt8>) -> Int? {
        guard (1...5).contains(value.count), value.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        let seconds = value.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        return (lowest...highest).contains(seconds) ? seconds : nil
    }
}
