import CountersignSeal
import Testing

/// Nonces that are drawn sixteen at a time differ like those that are drawn one by one.
@Suite struct NonceRandomTests {
    @Test("10,000 values from eight threads, of the length of a nonce and of others, differ")
    func differ() async {
        let random = NonceRandom()
        let values = await withTaskGroup(of: [[UInt8]].self) { group in
            for _ in 0..<8 {
                group.addTask { (0..<1_250).map { random.bytes($0 % 10 == 0 ? 32 : 16) } }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(values.count == 10_000 && Set(values).count == 10_000)
        #expect(values.allSatisfy { $0.count == 16 || $0.count == 32 })
        // Each bit of the first bytes of a nonce is set in about half of them.
        let nonces = values.filter { $0.count == 16 }
        for place in 0..<128 {
            let set = nonces.count { $0[place / 8] >> UInt8(place % 8) & 1 == 1 }
            #expect((4_100...4_900).contains(set), "bit \(place): \(set) of \(nonces.count)")
        }
    }
}
