import CountersignWire
import Testing

@testable import CountersignGate
@testable import CountersignSchemes

/// A release that was found once is found again without asking its source, until the source changes.
@Suite struct RecentReleasesTests {
    private let source = ChangingSource()
    private let first = KeyID(ours: "r_one-x")
    /// In the same place as `first`.
    private let second = KeyID(ours: "r_two-x")

    private func claim(_ id: KeyID, scheme: SchemeName = .messageSignatures) throws -> Claim {
        let bytes = [UInt8](repeating: 0, count: 32)
        let made = MAC(bytes.span)
        let mac = try #require(made)
        let claim = Claim(scheme: scheme, keyID: id, algorithm: .ofKey, mac: mac)
        claim.release = id
        return claim
    }

    @Test func asksOnce() throws {
        var recent = RecentReleases()
        source.set([first])
        for _ in 0..<3 { #expect(try recent.release(of: claim(first), from: source)?.id == first) }
        #expect(source.asked == 1)
    }

    @Test func asksAgainAfterEachChange() throws {
        var recent = RecentReleases()
        source.set([first])
        #expect(try recent.release(of: claim(first), from: source)?.id == first)
        source.set([])
        #expect(try recent.release(of: claim(first), from: source) == nil)
        source.set([first])
        #expect(try recent.release(of: claim(first), from: source)?.id == first)
        #expect(source.asked == 3)
    }

    @Test func keepsReleasesApart() throws {
        var recent = RecentReleases()
        source.set([first, second])
        for _ in 0..<2 {
            #expect(try recent.release(of: claim(first), from: source)?.id == first)
            #expect(try recent.release(of: claim(second), from: source)?.id == second)
        }
        #expect(try recent.release(of: claim(second, scheme: .authV1), from: source) == nil)
    }

    @Test func neverKeepsWhatIsUnknown() throws {
        var recent = RecentReleases()
        source.set([])
        for _ in 0..<2 { #expect(try recent.release(of: claim(first), from: source) == nil) }
        #expect(source.asked == 2)
    }

    @Test func asksASourceThatTellsNoGenerationEachTime() throws {
        var recent = RecentReleases()
        source.set([first])
        source.hidesGeneration()
        for _ in 0..<2 { #expect(try recent.release(of: claim(first), from: source)?.id == first) }
        #expect(source.asked == 2)
    }
}

/// A source whose releases a test replaces, and which counts how often it is asked.
private final class ChangingSource: ReleaseSource {
    private struct State {
        var releases: [KeyID: AppRelease] = [:]
        var generation: UInt64 = 0
        var isGenerationHidden = false
        var asked = 0
    }

    private let state = Locked(State())

    var asked: Int { state.with { $0.asked } }

    var generation: ReleaseGeneration? {
        state.with { $0.isGenerationHidden ? nil : ReleaseGeneration(store: $0.generation, memory: 0) }
    }

    func set(_ ids: [KeyID]) {
        let releases = ids.map {
            AppRelease(
                id: $0, app: "shop", platform: "ios", version: "1.0", scheme: .messageSignatures,
                policy: Policy(), key: SigningKey(secret("a key")))
        }
        state.with {
            $0.releases = Dictionary(uniqueKeysWithValues: releases.map { ($0.id, $0) })
            $0.generation += 1
        }
    }

    func hidesGeneration() { state.with { $0.isGenerationHidden = true } }

    func release(for id: KeyID) throws(OperationalError) -> AppRelease? {
        state.with {
            $0.asked += 1
            return $0.releases[id]
        }
    }
}
