import CountersignSeal
import CountersignWire

extension Deployment {
    /// What the tokens of bearer sessions are derived under; made at first use. By itself it opens nothing: each derivation
    /// takes the login token too, of which only a hash is kept.
    func bearerKey() throws(Fault) -> HMACSHA256 {
        let place = SealBinding(kind: "bearer-key", row: "bearer-key")
        var sealed = try store.value(of: .bearerKey)
        if sealed == nil { sealed = try store.claim(.bearerKey, seal(Secret(random: 32), as: place)) }
        guard let key = open(sealed ?? [], as: place) else {
            throw Fault(.failed, "bearer key: its sealed value does not open; the row was altered")
        }
        return key.withExposedBytes { HMACSHA256(key: $0) }
    }
}
