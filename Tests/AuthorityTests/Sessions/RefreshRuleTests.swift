import CountersignGate
import CountersignWire
import Testing

@testable import CountersignAuthority

/// The whole rule as a table: attempt A led to epoch 5, attempt B to epoch 4; C and D are attempts to refresh
/// epoch 5.
@Suite struct RefreshRuleTests {
    private static let now: Int64 = 1_000

    private static func device(offering attempts: [[UInt8]]? = nil) -> DeviceCredentials {
        var device = DeviceCredentials(signingKey: [1], agreementKey: [2], epochBegan: 900, sealedRoot: [5])
        device.epoch = 5
        device.sealedPreviousRoot = [4]
        device.attempts = [[0xA], [0xB]]
        device.successor = attempts.map { .init(sealedRoot: [6], ephemeral: [60], attempts: $0) }
        return device
    }

    @Test(
        "by the epoch that is left, the attempt, and whether a successor was offered",
        arguments: [
            (5, [0xC], nil, "first"), (5, [0xC], [[0xC]], "repeated"), (5, [0xD], [[0xC]], "joined"),
            (5, [0xA], nil, "first"), (5, [0xA], [[0xC]], "joined"),
            (4, [0xA], nil, "superseded"), (4, [0xB], nil, "superseded"), (4, [0xC], nil, "reused"),
            (4, [0xC], [[0xC]], "reused"), (0, [0xA], nil, "superseded"), (0, [0xC], nil, "reused"),
            (6, [0xD], [[0xC]], "first"), (6, [0xD], nil, "unknown"), (7, [0xD], [[0xC]], "unknown"),
            (.max, [0xD], [[0xC]], "unknown"),
        ] as [(UInt32, [UInt8], [[UInt8]]?, String)])
    func verdicts(_ row: (epoch: UInt32, attempt: [UInt8], offered: [[UInt8]]?, verdict: String)) {
        let device = RefreshRuleTests.device(offering: row.offered)
        let verdict = RefreshRule.judge(
            device, leaving: row.epoch, attempt: row.attempt, at: RefreshRuleTests.now)
        #expect("\(verdict)".hasPrefix(row.verdict))
    }

    @Test("the use of what was offered puts it in place")
    func confirmed() throws {
        let device = RefreshRuleTests.device(offering: [[0xC]])
        guard
            case .first(let next) = RefreshRule.judge(
                device, leaving: 6, attempt: [0xD], at: RefreshRuleTests.now)
        else { throw OperationalError(.failed, message: "no first") }
        #expect(next.epoch == 6 && next.sealedRoot == [6] && next.sealedPreviousRoot == [5])
        #expect(next.epochBegan == RefreshRuleTests.now && next.successor == nil)
        #expect(next.attempts == [[0xC], [0xA], [0xB]])
    }

    @Test("no more attempts are remembered than there is room for, the newest first")
    func bounded() {
        var device = RefreshRuleTests.device(offering: [[0]])
        for number in 1...20 as ClosedRange<UInt8> {
            guard
                case .joined(let next) = RefreshRule.judge(
                    device, leaving: 5, attempt: [number], at: RefreshRuleTests.now)
            else {
                Issue.record("not joined")
                return
            }
            device = next
        }
        #expect(device.successor?.attempts == (13...20).reversed().map { [$0] })
    }

    @Test("the last epoch there is cannot be left")
    func lastEpoch() {
        var device = RefreshRuleTests.device()
        device.epoch = .max
        let verdict = RefreshRule.judge(device, leaving: .max, attempt: [0xC], at: RefreshRuleTests.now)
        #expect(verdict == .unknown)
    }
}
