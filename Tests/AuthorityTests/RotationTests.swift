import CountersignAuthority
import CountersignGate
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

@Suite struct RotationTests {
    private let folder = TemporaryFolder()
    private let deployment: Deployment
    private let keys: ReleaseKeyDirectory
    private let id: KeyID

    init() throws {
        let app = try #require(AppName("demo"))
        deployment = try AuthorityTests.deployment(folder.data)
        id = try #require(KeyID("r_1"))
        _ = try deployment.addApp(app, settings: [], at: 5)
        _ = try deployment.addRelease(draft(app, id: "r_1"), at: 6)
        _ = try deployment.addRelease(draft(app, id: "r_2", version: "2.0"), at: 6)
        keys = try ReleaseKeyDirectory(deployment)
    }

    private func live() throws -> [[UInt8]] {
        let key = try #require(try keys.release(for: id))
        return [key.key.secret.copied] + (key.nextKey.map { [$0.secret.copied] } ?? [])
    }

    private let first = Array("secret of r_1".utf8)
    private let second = Array("the next secret".utf8)

    @Test("which releases hold a secret, as their key or their next one")
    func sharing() throws {
        let new = try #require(KeyID("r_9"))
        func holders(of secret: [UInt8], besides id: KeyID) throws -> [String] {
            try deployment.releases(sharing: Secret(copying: secret.span), besides: id).map(\.description)
        }
        #expect(try holders(of: first, besides: new) == ["r_1"])
        #expect(try holders(of: first, besides: id).isEmpty)
        #expect(try holders(of: second, besides: new).isEmpty)
        let other = try #require(KeyID("r_2"))
        try deployment.addNextKey(.secret(Secret(copying: first.span)), to: other)
        #expect(try holders(of: first, besides: new) == ["r_1", "r_2"])
        #expect(try holders(of: Array(first.dropLast()), besides: new).isEmpty)
    }

    @Test func promote() throws {
        try deployment.addNextKey(.secret(Secret(copying: second.span)), to: id)
        #expect(try live() == [first, second])
        try deployment.promoteNextKey(of: id)
        #expect(try live() == [second])
        #expect(try deployment.key(of: deployment.release(id)).secret.copied == second)
        try deployment.addNextKey(.secret(Secret(copying: first.span)), to: id)
        #expect(try live() == [second, first])
    }

    @Test func cancel() throws {
        try deployment.addNextKey(.secret(Secret(copying: second.span)), to: id)
        try deployment.dropNextKey(of: id)
        #expect(try live() == [first])
    }

    @Test func whatCannotBe() throws {
        let absent = try #require(KeyID("absent"))
        let next = Secret(copying: second.span)
        #expect(throws: OperationalError.self) { try deployment.promoteNextKey(of: id) }
        #expect(throws: OperationalError.self) { try deployment.dropNextKey(of: id) }
        #expect(throws: OperationalError.self) {
            try deployment.addNextKey(.secret(Secret(copying: first.span)), to: id)
        }
        #expect(throws: OperationalError.self) { try deployment.addNextKey(.secret(next), to: absent) }
        #expect(throws: OperationalError.self) { try deployment.promoteNextKey(of: absent) }
        #expect(try live() == [first])
        try deployment.addNextKey(.secret(next), to: id)
        let fault = #expect(throws: OperationalError.self) {
            try deployment.addNextKey(.secret(Secret(copying: Array("third".utf8).span)), to: id)
        }
        #expect(fault?.message.contains("--promote") == true)
        #expect(try live() == [first, second])
    }

    @Test("neither key's seal opens in the other's place, nor in another row's")
    func sealed() throws {
        try deployment.addNextKey(.secret(Secret(copying: second.span)), to: id)
        let good = try deployment.release(id)
        let next = try #require(good.sealedNextSecret)
        var swapped = good
        swapped.sealedSecret = next
        swapped.sealedNextSecret = good.sealedSecret
        #expect(throws: OperationalError.self) { try deployment.key(of: swapped) }
        #expect(throws: OperationalError.self) { try deployment.nextKey(of: swapped) }
        var other = try deployment.release(#require(KeyID("r_2")))
        other.sealedNextSecret = next
        #expect(throws: OperationalError.self) { try deployment.nextKey(of: other) }
        for (name, bytes) in try folder.contents() {
            #expect(bytes.range(of: Data(second)) == nil, "\(name)")
        }
    }
}
