import CountersignAuthority
import CountersignSeal
import CountersignWire
import Testing

@Suite struct AssertionSeedsTests {
    private let folder = TemporaryFolder()

    @Test func madeOnceAndKept() throws {
        let first = try deployment(folder.data).assertionSeeds()
        let again = try deployment(folder.data).assertionSeeds()
        #expect(first.current.copied == again.current.copied && first.next.copied == again.next.copied)
        #expect(first.current.copied != first.next.copied && first.previous == nil)
        #expect(try deployment(folder.data).answerKey().copied != first.current.copied)
    }

    @Test func theNextKeyFollows() throws {
        let deployment = try deployment(folder.data)
        let before = try deployment.assertionSeeds()
        let generation = deployment.generation.current
        try deployment.rotateAssertionKeys(at: 1_800_000_000)
        let after = try deployment.assertionSeeds()
        #expect(after.current.copied == before.next.copied && after.next.copied != before.current.copied)
        #expect(after.previous?.publicHalf == AnswerKey.publicHalf(of: before.current))
        #expect(after.previous?.replaced == 1_800_000_000)
        #expect(deployment.generation.current != generation, "a running server would not look")
        try deployment.rotateAssertionKeys(at: 1_800_000_001)
        #expect(try deployment.assertionSeeds().previous?.replaced == 1_800_000_001)
    }

    @Test("parts that were cut, swapped or altered do not open")
    func alteredRow() throws {
        let deployment = try deployment(folder.data)
        _ = try deployment.assertionSeeds()
        try deployment.rotateAssertionKeys(at: 1_800_000_000)
        let good = try #require(try deployment.store.value(of: .assertionKeys))
        let each = (good.count - 8) / 3
        let (current, next) = (good[..<each], good[each..<2 * each])
        var later = good
        later[2 * each + 7] ^= 1
        let altered: [[UInt8]] = [
            [], Array(current), Array(next + current), Array(current + current), Array(good.dropLast()),
            later,
            Array(good[..<(2 * each + 8)]), good + [0],
        ]
        for row in altered {
            try deployment.store.set(.assertionKeys, to: row)
            let fault = #expect(throws: OperationalError.self, "\(row.count) bytes") {
                try deployment.assertionSeeds()
            }
            #expect(fault?.message.contains("altered") == true)
        }
        try deployment.store.set(.assertionKeys, to: good)
        _ = try deployment.assertionSeeds()
        // A value without the previous key has the form of one that was never rotated.
        try deployment.store.set(.assertionKeys, to: Array(current + next))
        #expect(try deployment.assertionSeeds().previous == nil)
    }
}
