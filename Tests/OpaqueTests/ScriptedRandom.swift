import CountersignSeal
import Testing

/// Gives out what a vector says was drawn, in turn.
final class ScriptedRandom: RandomSource {
    private let draws: Locked<[[UInt8]]>

    init(_ draws: [[UInt8]]) { self.draws = Locked(draws) }

    func bytes(_ count: Int) -> [UInt8] {
        let draw = draws.with { $0.isEmpty ? nil : $0.removeFirst() }
        #expect(draw?.count == count, "the draws come in another order than the standard's")
        return draw ?? [UInt8](repeating: 0, count: count)
    }

    var isUsedUp: Bool { draws.with { $0.isEmpty } }

    /// The 64 bytes that a scalar of 32 comes of.
    static func wide(_ scalar: [UInt8]) -> [UInt8] { scalar + [UInt8](repeating: 0, count: 32) }
}
