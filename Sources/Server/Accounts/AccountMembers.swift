import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSeal
import CountersignWire

/// What the bodies of sign-up and login are made of.
extension Members {
    /// In its one spelling: the client has bound the bytes that it sent.
    func account() throws(Refusal) -> AccountName {
        let text = try text("account")
        do throws(AccountName.Problem) {
            return try AccountName(checking: Array(text.utf8).span)
        } catch {
            throw Refusal(.malformed, "member `account`: \(error)")
        }
    }

    func device() throws(Refusal) -> Device {
        let device = try members("device")
        let (kind, name) = try device.deviceLabel()
        return Device(
            signingKey: try device.point("signing_key"), agreementKey: try device.point("agreement_key"), kind: kind,
            name: name, keyStorage: try device.keyStorage())
    }

    /// Nil where the client does not say, and for a word of a later protocol: then neither end binds it.
    private func keyStorage() throws(Refusal) -> KeyStorage? {
        try text(ifAny: "key_storage").flatMap(KeyStorage.init(rawValue:))
    }

    /// What a device is called, without its keys.
    func deviceLabel() throws(Refusal) -> (kind: Device.Class, name: Device.Name) {
        guard let kind = Device.Class(rawValue: try text("class")) else {
            let known = Device.Class.allCases.map(\.rawValue).joined(separator: ", ")
            throw malformed("class", expected: "one of \(known)")
        }
        guard let name = Device.Name(try text("name")) else {
            throw malformed("name", expected: "1 to \(Device.Name.longest) bytes without control characters")
        }
        return (kind, name)
    }

    private func point(_ name: String) throws(Refusal) -> P256Point {
        guard let point = P256Point(try bytes(name, P256Point.count)) else {
            throw malformed(name, expected: "a point on P-256, uncompressed")
        }
        return point
    }

    func finish() throws(Refusal) -> LoginFinish {
        LoginFinish(
            loginID: try bytes("login_id", PendingLogins.idCount), ke3: try bytes("ke3", 64),
            signature: try bytes("signature", 64), mac: try bytes("mac", 32))
    }

    /// Whether who starts a registration says that a code will come with its end.
    func isReset() throws(Refusal) -> Bool { try flag(ifAny: "reset") ?? false }
}

extension RouteCall {
    /// The release that calls.
    func release() throws(Refusal) -> ReleaseKey {
        guard let caller else { throw Refusal(.unsigned, "this route is a release's") }
        return caller.release
    }
}

extension ReleaseKey {
    func appName() throws(Refusal) -> AppName {
        guard let name = AppName(app) else { throw Refusal(.unavailable, "release \(id): its app has no name") }
        return name
    }
}

func encoded(_ bytes: [UInt8]) -> JSONValue { .string(Base64.encode(bytes.span, .url)) }
