import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSeal
import CountersignWire

/// The members of a JSON object, as a route reads them. A member that is missing, or of another kind, is
/// `malformed`, and the refusal names it; a member that no route reads is ignored. Source: docs/protocol.md,
/// "The authority's routes".
struct RequestBodyMembers: Sendable {
    /// Bytes of a body; more than any of these routes needs.
    static let mostBytes = 64 << 10
    /// Levels of containers in it.
    static let deepest = 8

    private let document: JSONDocument
    private let object: JSON
    /// The object's path, for messages: empty for the whole body, `device.` for a member of it.
    private let place: String

    /// The body of a request.
    init(of body: [UInt8]) throws(Refusal) {
        var bounds = JSONReader.Bounds()
        bounds.bytes = RequestBodyMembers.mostBytes
        bounds.depth = RequestBodyMembers.deepest
        do {
            document = try JSONReader.read(body, bounds: bounds)
        } catch {
            throw Refusal(.malformed, detail: "the body is not JSON: \(error)")
        }
        guard document.root.members != nil else {
            throw Refusal(.malformed, detail: "the body is \(document.root.kind); expected an object")
        }
        object = document.root
        place = ""
    }

    private init(in document: JSONDocument, object: JSON, at place: String) {
        self.document = document
        self.object = object
        self.place = place
    }

    // MARK: What must be there

    func text(_ name: String) throws(Refusal) -> String {
        let value = try required(name, expected: "a string")
        guard let text = value.string else { throw wrong(name, found: value.kind, expected: "a string") }
        return text
    }

    /// base64url of exactly `count` bytes.
    func bytes(_ name: String, count: Int) throws(Refusal) -> [UInt8] {
        let expected = "base64url of \(count) bytes"
        guard let bytes = Base64.decode(try text(name), as: .url), bytes.count == count else {
            throw wrong(name, found: "something else", expected: expected)
        }
        return bytes
    }

    /// base64url of 1 to `most` bytes.
    func bytes(_ name: String, upTo most: Int) throws(Refusal) -> [UInt8] {
        let expected = "base64url of 1 to \(most) bytes"
        guard let bytes = Base64.decode(try text(name), as: .url), (1...most).contains(bytes.count) else {
            throw wrong(name, found: "something else", expected: expected)
        }
        return bytes
    }

    /// A whole number, written without fraction and exponent.
    func integer(_ name: String, in range: ClosedRange<Int> = 0...Int.max) throws(Refusal) -> Int64 {
        let expected = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        let value = try required(name, expected: expected)
        guard let number = document.integer(value, in: range) else {
            throw wrong(name, found: value.kind, expected: expected)
        }
        return Int64(number)
    }

    func members(_ name: String) throws(Refusal) -> RequestBodyMembers {
        let value = try required(name, expected: "an object")
        guard value.members != nil else { throw wrong(name, found: value.kind, expected: "an object") }
        return RequestBodyMembers(in: document, object: value, at: "\(place)\(name).")
    }

    /// A secret, as its UTF-8 bytes. The body that contained it is not wiped.
    func secret(_ name: String, upTo most: Int) throws(Refusal) -> Secret {
        let text = try text(name)
        guard text.utf8.count <= most else {
            throw wrong(name, found: "longer", expected: "at most \(most) bytes")
        }
        return Secret(copying: Array(text.utf8).span)
    }

    // MARK: What may be there

    /// Whether there is such a member; `null` counts as absent.
    func has(_ name: String) -> Bool {
        guard let value = object[name] else { return false }
        if case .null = value.content { return false }
        return true
    }

    func text(ifAny name: String) throws(Refusal) -> String? { has(name) ? try text(name) : nil }
    func flag(ifAny name: String) throws(Refusal) -> Bool? {
        guard has(name), let value = object[name] else { return nil }
        guard case .bool(let flag) = value.content else {
            throw wrong(name, found: value.kind, expected: "true or false")
        }
        return flag
    }
    func members(ifAny name: String) throws(Refusal) -> RequestBodyMembers? {
        has(name) ? try members(name) : nil
    }

    /// A refusal of a member's value; `expected` describes the right value.
    func malformed(_ name: String, expected: String) -> Refusal {
        wrong(name, found: "something else", expected: expected)
    }

    private func required(_ name: String, expected: String) throws(Refusal) -> JSON {
        guard let value = object[name] else {
            throw Refusal(.malformed, detail: "member `\(place)\(name)` is missing; expected \(expected)")
        }
        return value
    }

    /// States what was expected, and never the value that was there: that may have been meant for another
    /// member.
    private func wrong(_ name: String, found: String, expected: String) -> Refusal {
        Refusal(.malformed, detail: "member `\(place)\(name)` is \(found); expected \(expected)")
    }
}

/// The members of the bodies of sign-up and login.
extension RequestBodyMembers {
    /// Only in canonical form, because the client has bound the bytes that it sent.
    func account() throws(Refusal) -> AccountName {
        let text = try text("account")
        do {
            return try AccountName(checking: Array(text.utf8).span)
        } catch {
            throw Refusal(.malformed, detail: "member `account`: \(error)")
        }
    }

    func device() throws(Refusal) -> Device {
        let device = try members("device")
        let (kind, name) = try device.deviceLabel()
        return Device(
            signingKey: try device.point("signing_key"), agreementKey: try device.point("agreement_key"),
            kind: kind,
            name: name, keyStorage: try device.keyStorage())
    }

    /// Nil if the client does not state it, and for a word of a later protocol: then neither end binds it.
    private func keyStorage() throws(Refusal) -> KeyStorage? {
        try text(ifAny: "key_storage").flatMap(KeyStorage.init(rawValue:))
    }

    /// The device's class and name, without its keys.
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

    /// The solution of a challenge from an earlier refusal, if the caller brings one.
    func workSolution() throws(Refusal) -> LoginWork.Solution? {
        guard let work = try members(ifAny: "work") else { return nil }
        return LoginWork.Solution(
            challenge: try work.bytes("challenge", count: LoginWork.challengeCount),
            numbers: try work.bytes("solution", count: LoginWork.solutionCount))
    }

    /// The device of a registration with a reset code; these are its members.
    func signedResetDevice() throws(Refusal) -> SignedResetDevice {
        let (kind, name) = try deviceLabel()
        return SignedResetDevice(
            ResetDevice(signingKey: try point("signing_key"), kind: kind, name: name),
            signature: try bytes("signature", count: 64), mac: try bytes("mac", count: 32))
    }

    private func point(_ name: String) throws(Refusal) -> P256Point {
        guard let point = P256Point(try bytes(name, count: P256Point.count)) else {
            throw malformed(name, expected: "a point on P-256, uncompressed")
        }
        return point
    }

    func finish() throws(Refusal) -> LoginFinish {
        LoginFinish(
            loginID: try bytes("login_id", count: PendingLogins.idCount), ke3: try bytes("ke3", count: 64),
            signature: try bytes("signature", count: 64), mac: try bytes("mac", count: 32))
    }

    /// Whether the start of a registration announces a reset code with its finish.
    func isReset() throws(Refusal) -> Bool { try flag(ifAny: "reset") ?? false }
}

extension RouteCall {
    /// The release that calls.
    func release() throws(Refusal) -> AppRelease {
        guard let caller else { throw Refusal(.unsigned, detail: "this route is a release's") }
        return caller.release
    }
}

extension AppRelease {
    func appName() throws(Refusal) -> AppName {
        guard let name = AppName(app) else {
            throw Refusal(.unavailable, detail: "release \(id): its app has no name")
        }
        return name
    }
}

func encoded(_ bytes: [UInt8]) -> JSONValue { .string(Base64.encode(bytes.span, as: .url)) }
