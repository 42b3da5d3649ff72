// Proves that the answer key has one successor, made once and known before it signs; that a rotation
// which would cut live releases off is refused and names them; and that of two rotations at once one is made.

import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignAuthority

@Suite struct AnswerSeedsTests {
    private let folder = TemporaryFolder()
    private static let now: Int64 = 1_800_000_000

    private func add(
        _ id: String, to deployment: Deployment, at now: Int64 = now, scheme: SchemeName = .messageSignatures
    ) throws -> IssuedRelease {
        let app = try #require(AppName("demo"))
        if try deployment.store.app(app) == nil { _ = try deployment.addApp(app, settings: [], at: now) }
        return try deployment.addRelease(
            ReleaseDraft(
                app: app, platform: try #require(Platform("ios")), version: try #require(Version(id)),
                scheme: scheme, id: try #require(KeyID(id)), secret: Secret(random: 32)), at: now)
    }

    @Test func madeOnceAndKept() throws {
        let first = try deployment(folder.data).answerSeeds()
        let again = try deployment(folder.data).answerSeeds()
        #expect(first.current.copied == again.current.copied && first.next.copied == again.next.copied)
        #expect(first.current.copied != first.next.copied && first.nextMade == again.nextMade)
        #expect(try deployment(folder.data).answerKey().copied == first.current.copied)
    }

    @Test("a value that lacks the next key does not open")
    func alone() throws {
        let deployment = try deployment(folder.data)
        _ = try deployment.answerSeeds()
        let whole = try #require(try deployment.store.value(of: .answerKey))
        try deployment.store.set(.answerKey, to: Array(whole[..<((whole.count - 8) / 2)]))
        #expect(throws: OperationalError.self) { try deployment.answerSeeds() }
    }

    @Test("two processes that begin at once end with one pair")
    func together() throws {
        let (one, other) = (try deployment(folder.data), try deployment(folder.data))
        let (first, second) = (try one.answerSeeds(), try other.answerSeeds())
        #expect(first.current.copied == second.current.copied && first.next.copied == second.next.copied)
    }

    @Test func theNextKeyFollows() throws {
        let deployment = try deployment(folder.data)
        let before = try deployment.answerSeeds()
        let generation = deployment.generation.current
        let rotated = try deployment.rotateAnswerKey(.onlyIfEveryReleaseHasTheNextKey, at: Self.now)
        let after = try deployment.answerSeeds()
        #expect(after.current.copied == before.next.copied && after.next.copied != before.current.copied)
        #expect(after.next.copied == rotated.next.copied && after.nextMade == Self.now)
        #expect(deployment.generation.current != generation, "a running server would not look")
        let record = try #require(try deployment.auditRecords(last: 1).last)
        let text = String(decoding: record.record, as: UTF8.self)
        let key = try rotated.publicHalves().current
        #expect(text.contains(#""action":"answer-key.rotate""#))
        #expect(
            text.contains(Base64.encode(key.span, as: .url)) && text.contains(#""releases_without_it":0"#))
    }

    @Test("a release is told both keys, also right after a rotation")
    func issued() throws {
        let deployment = try deployment(folder.data)
        let first = try add("r_1", to: deployment)
        let keys = try deployment.answerSeeds().publicHalves()
        #expect(first.answerKey == keys.current && first.nextAnswerKey == keys.next)
        _ = try deployment.rotateAnswerKey(.evenIfReleasesLackTheNextKey, at: Self.now)
        let second = try add("r_2", to: deployment)
        #expect(second.answerKey == first.nextAnswerKey && second.nextAnswerKey != first.nextAnswerKey)
        // All within one second, and told apart.
        let lacking = try deployment.releasesWithoutNextAnswerKey(at: Self.now)
        #expect(lacking.map(\.id.description) == ["r_1"])
    }

    @Test("a rotation that would cut releases off names at most ten, and changes nothing")
    func refused() throws {
        let deployment = try deployment(folder.data)
        for number in 10..<22 { _ = try add("r_\(number)", to: deployment) }
        _ = try add("r_legacy", to: deployment, scheme: .formMD5)
        let retirement = AppRelease.Retirement(at: Self.now, updateURL: "https://example.com")
        try deployment.retire(try #require(KeyID("r_10")), with: retirement)
        var partial = retirement
        partial.rollout = [.init(since: 0, percent: 50)]
        try deployment.retire(try #require(KeyID("r_11")), with: partial)
        // All know the present next key; after this rotation none knows the next but one.
        _ = try deployment.rotateAnswerKey(.onlyIfEveryReleaseHasTheNextKey, at: Self.now)
        let stored = try deployment.store.value(of: .answerKey)
        let fault = #expect(throws: OperationalError.self) {
            try deployment.rotateAnswerKey(.onlyIfEveryReleaseHasTheNextKey, at: Self.now)
        }
        let message = try #require(fault?.message)
        #expect(message.contains("11 live releases were") && message.contains("and 1 more"))
        #expect(message.contains("demo r_11 on ios (r_11)") && message.contains("(r_20)"))
        for absent in ["r_10", "r_21", "r_legacy"] { #expect(!message.contains("(\(absent))"), "\(absent)") }
        #expect(try deployment.store.value(of: .answerKey) == stored)
        #expect(throws: Never.self) {
            try deployment.rotateAnswerKey(.evenIfReleasesLackTheNextKey, at: Self.now)
        }
        let record = try #require(try deployment.auditRecords(last: 1).last)
        #expect(String(decoding: record.record, as: UTF8.self).contains(#""releases_without_it":11"#))
    }

    @Test("each part is sealed anew for its own place, and a part that does not open is no part")
    func sealedAgain() throws {
        let deployment = try deployment(folder.data)
        let before = try deployment.answerSeeds()
        let stored = try #require(try deployment.store.value(of: .answerKey))
        func again(_ stored: [UInt8]) -> [UInt8]? {
            AnswerSeeds.sealAgain(stored) { (part, binding) in
                deployment.open(part, as: binding).map { deployment.seal($0, as: binding) }
            }
        }
        let sealed = try #require(again(stored))
        #expect(sealed != stored && again(Array(stored.dropLast())) == nil)
        try deployment.store.set(.answerKey, to: sealed)
        let after = try deployment.answerSeeds()
        #expect(after.current.copied == before.current.copied && after.next.copied == before.next.copied)
        #expect(after.nextMade == before.nextMade)
        #expect(again(Array(stored[..<((stored.count - 8) / 2)])) == nil, "lacks the next key")
        var altered = stored
        altered[stored.count - 9] ^= 1
        #expect(again(altered) == nil)
    }

    @Test("parts that were cut, swapped or altered do not open")
    func alteredRow() throws {
        let deployment = try deployment(folder.data)
        _ = try deployment.answerSeeds()
        let good = try #require(try deployment.store.value(of: .answerKey))
        let each = (good.count - 8) / 2
        let (current, next, time) = (good[..<each], good[each..<2 * each], good[(2 * each)...])
        var later = good
        later[2 * each + 7] ^= 1
        let altered: [[UInt8]] = [
            [], Array(next), Array(next + current + time), Array(current + current + time),
            Array(next + next + time), Array(current + next), Array(good.dropLast()), later, good + [0],
        ]
        for row in altered {
            try deployment.store.set(.answerKey, to: row)
            let fault = #expect(throws: OperationalError.self, "\(row.count) bytes") {
                try deployment.answerSeeds()
            }
            #expect(fault?.message.contains("altered") == true)
            #expect(try deployment.store.value(of: .answerKey) == row, "it is not replaced")
        }
        try deployment.store.set(.answerKey, to: good)
        _ = try deployment.answerSeeds()
    }
}
