import CountersignOpaque
import CountersignSeal
import CountersignWire

/// The long-lived keys of sign-up and login, each sealed under the master key and made at first use.
extension Deployment {
    /// OPAQUE's seed and key pair. Every registration is made with them: without them each account would have to register
    /// anew.
    func opaqueKeys() throws(Fault) -> ServerKeys {
        let bytes = try kept(.opaqueKeys, as: SealBinding(kind: "opaque-keys", row: "opaque-keys")) {
            () throws(Fault) in
            try Fault.wrapping("OPAQUE keys") { () throws(CryptographyFault) in try ServerKeys.random().bytes }
        }
        let keys = try Fault.wrapping("OPAQUE keys") { () throws(CryptographyFault) in try ServerKeys(bytes) }
        guard let keys else { throw Fault(.failed, "OPAQUE keys: what is sealed as them are none") }
        return keys
    }

    /// The X25519 key that registrations are sealed to on their way.
    func registrationKey() throws(Fault) -> SealedBox.Receiver {
        let place = SealBinding(kind: "registration-key", row: "registration-key")
        let scalar = try kept(.registrationKey, as: place) { () throws(Fault) in
            Secret(random: SealedBox.Receiver.count)
        }
        guard let key = SealedBox.Receiver(scalar) else {
            throw Fault(.failed, "registration key: what is sealed as it is none")
        }
        return key
    }

    /// What is sealed there; where nothing is, what `fresh` makes, or what somebody else put there meanwhile.
    private func kept(
        _ name: MetaName, as place: SealBinding, orElse fresh: () throws(Fault) -> Secret
    ) throws(Fault) -> Secret {
        var sealed = try store.value(of: name)
        if sealed == nil { sealed = try store.claim(name, seal(fresh(), as: place)) }
        guard let opened = open(sealed ?? [], as: place) else {
            throw Fault(.failed, "\(name.rawValue): its sealed value does not open; the row was altered")
        }
        return opened
    }
}

extension Fault {
    /// What cryptography could not do, as a fault that says what for.
    static func wrapping<Result>(
        _ what: String, _ body: () throws(CryptographyFault) -> Result
    ) throws(Fault) -> Result {
        do throws(CryptographyFault) {
            return try body()
        } catch {
            throw Fault(.failed, "\(what): \(error)")
        }
    }
}
