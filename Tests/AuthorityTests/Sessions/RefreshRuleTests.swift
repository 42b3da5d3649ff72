import CountersignGate
import CountersignHandshake
import CountersignWire
import Testing

@testable import CountersignAuthority

/// The whole rule as a table: attempt A led to epoch 5, the highest counter is 7; C is the attempt that asked
/// for epoch 6, if that was offered.
@Suite struct RefreshRuleTests {
    private static let now: Int64 = 1_000
    private static let seen: [UInt8] = [0x77]

    private static func device(offering attempts: [[UInt8]]? = nil, counter: Int64 = 7) -> DeviceCredentials {
        var device = DeviceCredentials(
            signingKey: [1], agreementKey: [2], epochBegan: 900, sealedRoot: [1, 5])
        device.epoch = 5
        device.sealedPreviousRoot = [4]
        device.attempts = [[0xA]]
        device.counter = counter
        device.counterDigest = counter > 0 ? seen : nil
        device.successor = attempts.map { .init(sealedRoot: [1, 6], ephemeral: [60], attempts: $0) }
        return device
    }

    private static func statement(
        _ epoch: UInt32, _ attempt: [UInt8], _ counter: Int64, _ digest: [UInt8] = [1],
        _ purpose: RefreshTranscript.Purpose = .renew
    ) -> RefreshRule.Statement {
        RefreshRule.Statement(
            epoch: epoch, attempt: attempt, counter: counter, digest: digest, purpose: purpose)
    }

    private static func name(_ verdict: RefreshRule.Verdict) -> String {
        switch verdict {
        case .superseded(let next): next == nil ? "superseded" : "superseded, stored"
        default: String("\(verdict)".prefix { $0 != "(" })
        }
    }

    @Test(
        "by the epoch that is left, the attempt, the counter, and whether a successor was offered",
        arguments: [
            // Above the highest counter.
            (5, [0xC], 8, nil, "first"), (5, [0xC], 8, [[0xC]], "recorded"), (5, [0xD], 8, [[0xC]], "reused"),
            (5, [0xC], 900, [[0xC]], "recorded"), (4, [0xA], 8, nil, "superseded, stored"),
            (4, [0xA], 8, [[0xC]], "superseded, stored"), (4, [0xC], 8, nil, "reused"),
            (3, [0xA], 8, nil, "reused"),
            (0, [0xC], 8, nil, "reused"), (6, [0xD], 8, [[0xC]], "first"), (6, [0xD], 8, nil, "unknown"),
            (7, [0xD], 8, [[0xC]], "unknown"), (.max, [0xD], 8, [[0xC]], "unknown"),
            // Not above it: a copy that was held, or another holder, who is told so.
            (5, [0xC], 6, nil, "superseded"), (5, [0xC], 6, [[0xC]], "superseded"),
            (5, [0xD], 6, [[0xC]], "superseded"), (4, [0xA], 6, nil, "superseded"),
            (4, [0xC], 6, nil, "superseded"),
            (0, [0xC], 1, nil, "superseded"), (6, [0xD], 6, [[0xC]], "superseded"),
            // Another transcript with the highest counter.
            (5, [0xC], 7, [[0xC]], "reused"), (4, [0xA], 7, nil, "reused"), (0, [0xA], 7, nil, "reused"),
            // More than a device can have signed.
            (5, [0xC], RefreshTranscript.highestCounter, [[0xC]], "recorded"),
            (5, [0xC], RefreshTranscript.highestCounter + 1, [[0xC]], "reused"),
        ] as [(UInt32, [UInt8], Int64, [[UInt8]]?, String)])
    func verdicts(
        _ row: (epoch: UInt32, attempt: [UInt8], counter: Int64, offered: [[UInt8]]?, verdict: String)
    ) {
        let device = RefreshRuleTests.device(offering: row.offered)
        let verdict = RefreshRule.judge(
            device, by: RefreshRuleTests.statement(row.epoch, row.attempt, row.counter),
            at: RefreshRuleTests.now)
        #expect(RefreshRuleTests.name(verdict) == row.verdict)
    }

    @Test("the first counter of a session is above none")
    func firstCounter() {
        let verdict = RefreshRule.judge(
            RefreshRuleTests.device(counter: 0), by: RefreshRuleTests.statement(5, [0xC], 1),
            at: RefreshRuleTests.now)
        #expect(RefreshRuleTests.name(verdict) == "first")
    }

    @Test("the same transcript again is no second party, and a report ends the session whatever its counter")
    func sameTranscript() {
        for epoch in [5, 4] as [UInt32] {
            let statement = RefreshRuleTests.statement(epoch, [0xC], 7, RefreshRuleTests.seen)
            let found = RefreshRule.judge(
                RefreshRuleTests.device(offering: [[0xC]]), by: statement, at: RefreshRuleTests.now)
            #expect(found == .superseded(nil))
        }
        for counter in [1, 7, 8] as [Int64] {
            let report = RefreshRuleTests.statement(5, [0xC], counter, [1], .reportReuse)
            let found = RefreshRule.judge(
                RefreshRuleTests.device(), by: report, at: RefreshRuleTests.now)
            #expect(found == .reused)
        }
    }

    @Test("the use of what was offered puts it in place, with the attempt that asked for it")
    func confirmed() throws {
        let device = RefreshRuleTests.device(offering: [[0xC]])
        guard
            case .first(let next) = RefreshRule.judge(
                device, by: RefreshRuleTests.statement(6, [0xD], 9), at: RefreshRuleTests.now)
        else { throw OperationalError(.failed, message: "no first") }
        #expect(next.epoch == 6 && next.sealedRoot == [1, 6] && next.sealedPreviousRoot == [1, 5])
        #expect(next.epochBegan == RefreshRuleTests.now && next.successor == nil)
        #expect(next.attempts == [[0xC]] && next.counter == 9 && next.counterDigest == [1])
    }

    @Test("the last epoch there is cannot be left")
    func lastEpoch() {
        var device = RefreshRuleTests.device()
        device.epoch = .max
        let verdict = RefreshRule.judge(
            device, by: RefreshRuleTests.statement(.max, [0xC], 8), at: RefreshRuleTests.now)
        #expect(verdict == .unknown)
    }
}
