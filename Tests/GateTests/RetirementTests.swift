import CountersignSchemes
import CountersignWire
import Testing

@testable import CountersignGate

/// Retirement of versions by stages, with devices in a fixed order.
@Suite struct RetirementTests {
    private static let retirement = {
        var retirement = AppRelease.Retirement(at: 400, updateURL: "https://example.com/new")
        retirement.warnAt = 200
        retirement.readOnlyAt = 300
        return retirement
    }()

    @Test(
        "each stage begins at its moment",
        arguments: [
            (Int64(199), AppRelease.Stage.live), (200, .warn), (299, .warn), (300, .readOnly),
            (399, .readOnly), (400, .retired), (Int64.max, .retired),
        ])
    func stages(_ now: Int64, _ stage: AppRelease.Stage) {
        #expect(Self.retirement.stage(at: now) == stage)
        #expect(
            Self.retirement.stage(
                at: now,
                bucket: {
                    Issue.record("nobody asks where all go"); return 0
                }) == stage)
    }

    @Test("a moment that is left out is passed over")
    func leftOut() {
        var retirement = AppRelease.Retirement(at: 400, updateURL: "u:x")
        #expect(retirement.stage(at: 399) == .live)
        retirement.readOnlyAt = 300
        #expect(retirement.stage(at: 299) == .live && retirement.stage(at: 300) == .readOnly)
    }

    @Test("who is reached stays reached as the share grows")
    func shares() {
        var retirement = Self.retirement
        retirement.rollout = [
            .init(since: 250, percent: 10), .init(since: 350, percent: 60), .init(since: 500, percent: 90),
        ]
        for (now, percent) in [(249, 0), (250, 10), (349, 10), (350, 60), (499, 60), (500, 90)]
            as [(Int64, Int)]
        {
            #expect(retirement.percent(at: now) == percent)
            for place in 0..<100 {
                let stage = retirement.stage(at: now, bucket: { place })
                #expect(stage == (place < percent ? retirement.stage(at: now) : .live))
            }
        }
    }

    @Test(
        "the gate: told at first, then only read, then sent away",
        arguments: [SchemeName.messageSignatures, .formMD5])
    func gate(_ scheme: SchemeName) async throws {
        let now = Deployment.now
        func verdict(_ change: (inout AppRelease.Retirement) -> Void, method: String = "POST") async throws
            -> (
                Refusal?, UpdateNotice?
            )
        {
            var retirement = AppRelease.Retirement(at: now + 100, updateURL: "https://example.com/new")
            change(&retirement)
            let deployment = try Deployment(retirement: retirement)
            let request = try deployment.signed(scheme, nonce: "abcdefgh12345678") { $0.method = method }
            do throws(Refusal) {
                return (nil, try await deployment.gate.judge(request, from: { [192, 0, 2, 1] }).update)
            } catch {
                return (error, nil)
            }
        }
        #expect(try await verdict { _ in } == (nil, nil))
        let told = try await verdict { $0.warnAt = now }.1
        #expect(told?.fieldValue == "stage=warn, at=\(now + 100), link=\"https://example.com/new\"")
        let refused = try await verdict { $0.readOnlyAt = now }.0
        #expect(refused?.code == .updateRequired && refused?.link == "https://example.com/new")
        #expect(try await verdict({ $0.readOnlyAt = now }, method: "GET").1?.stage == .readOnly)
        #expect(try await verdict({ $0.at = now }, method: "GET").0?.code == .updateRequired)
        #expect(
            try await verdict({ retirement in
                retirement.at = now
                retirement.rollout = [.init(since: now + 1, percent: 100)]
            }) == (nil, nil))
    }

    @Test("our own routes that keep a session alive are reading")
    func upkeep() async throws {
        var retirement = AppRelease.Retirement(at: .max, updateURL: "u:x")
        retirement.readOnlyAt = 1
        let deployment = try Deployment(retirement: retirement)
        let request = try deployment.signed(.messageSignatures, nonce: "n-reading")
        #expect(try await deployment.gate.judge(request, as: .reads).update?.stage == .readOnly)
        let read = try deployment.signed(.messageSignatures, nonce: "n-changing") { $0.method = "GET" }
        await #expect(throws: Refusal.self) { try await deployment.gate.judge(read, as: .changes) }
    }

    @Test("places are fixed, and fall evenly")
    func places() async throws {
        let first = try await caller("r_messages")
        var counts = [Int](repeating: 0, count: 100)
        for number in 0..<20_000 {
            counts[
                RolloutBucket.bucket(
                    for: first.release, in: first.session,
                    from: { [198, 51, UInt8(number / 250), UInt8(number % 250)] })] +=
                1
        }
        // Each is 200 with a standard deviation of 14; a deviation of five times that is not chance.
        #expect(counts.allSatisfy { abs($0 - 200) < 75 }, "\(counts)")
        let place = RolloutBucket.bucket(for: first.release, in: first.session, from: { [192, 0, 2, 7] })
        #expect(
            RolloutBucket.bucket(for: first.release, in: first.session, from: { [192, 0, 2, 7] }) == place)
    }

    private func caller(_ id: String) async throws -> Caller {
        let deployment = try Deployment()
        return try await deployment.gate.judge(deployment.signed(.messageSignatures, nonce: "n-\(id)"))
    }

    @Test("a link that a structured field cannot hold is escaped")
    func quoting() {
        let retirement = AppRelease.Retirement(at: 5, updateURL: "https://example.com/é?a=\"b\\c")
        let value = UpdateNotice(stage: .warn, retirement: retirement).fieldValue
        #expect(value == "stage=warn, at=5, link=\"https://example.com/%C3%A9?a=%22b%5Cc\"")
    }
}
