import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

/// What each legacy scheme is known to confuse. These pairs must share a string to sign: a spelling that told
/// them apart would no longer be the one that clients in the field have.
@Suite struct CollisionTests {
    @Test("two meanings, one string to sign", arguments: try all())
    func share(_ pair: Collision) throws {
        #expect(pair.one != pair.other)
        #expect(try stringToSign(pair.one, pair.scheme) == stringToSign(pair.other, pair.scheme))
    }

    private func stringToSign(_ call: Collision.Call, _ name: String) throws -> String {
        let scheme = try #require(SchemeName(rawValue: name).flatMap(SchemeRegistry.standard.scheme(named:)))
        var draft = Draft(method: call.method, target: Array(call.target.utf8), authority: "h.example")
        draft.body = Array(call.body.utf8)
        if name != "auth-v4", !call.body.isEmpty {
            draft.setField("Content-Type", to: "application/x-www-form-urlencoded")
        }
        let credentials = Credentials(
            keyID: try #require(KeyID("k")), key: SigningKey(Secret(copying: Array("secret".utf8).span)),
            platform: "ios", version: "1")
        try scheme.sign(&draft, as: credentials, at: 1_800_000_000, nonce: "aaaaaaaaaaaaaaaa")
        let request = draft.request()
        var workspace = Workspace()
        let claim = try #require(try scheme.claim(in: request, workspace: &workspace))
        try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
        return workspace.text.displayText
    }

    private static func all() throws -> [Collision] {
        var found: [Collision] = []
        for scheme in ["form-md5", "auth-v1", "auth-v2", "auth-v4"] {
            for var pair in try Vectors.load("\(scheme)/collisions.json", as: Collision.self) {
                pair.scheme = scheme
                found.append(pair)
            }
        }
        return found
    }
}

struct Collision: Decodable, Sendable, CustomTestStringConvertible {
    struct Call: Decodable, Sendable, Equatable {
        var method: String
        var target: String
        var body: String
    }

    var name: String
    var one: Call
    var other: Call
    var scheme = ""

    private enum CodingKeys: CodingKey { case name, one, other }

    var testDescription: String { "\(scheme): \(name)" }
}
