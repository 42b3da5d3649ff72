// Proves how the room of keyed requests is shared where nothing can be forgotten: however many holders take all
// that they can, a holder without a key begins one and has its response kept.
import Testing

@testable import CountersignAuthority

@Suite struct IdempotencyBoundsTests {
    /// The total and the usage of holders, by number.
    private struct Usage {
        var used = IdempotencyUsage.none
        var held: [Int: IdempotencyUsage] = [:]

        mutating func add(_ more: IdempotencyUsage, to holder: Int) {
            used = used + more
            held[holder] = self[holder] + more
        }

        subscript(holder: Int) -> IdempotencyUsage { held[holder] ?? .none }
    }

    @Test(
        "many holders that take all they can leave a first key to others",
        arguments: [(3_000, 20), (3_000, 60), (100_000, 20), (100_000, 1_000)])
    func firstKeys(keys: Int, holders: Int) {
        var bounds = IdempotencyBounds()
        bounds.all.keys = keys
        var usage = Usage()
        func begins(_ holder: Int) -> Bool {
            let room = bounds.room(
                for: .account(Int64(holder)), own: .none, held: usage[holder], used: usage.used)
            if room.admits { usage.add(IdempotencyUsage(keys: 1, bytes: 0), to: holder) }
            return room.admits
        }
        for holder in 0..<holders { while begins(holder) {} }
        #expect(usage.used.keys > keys * 15 / 16)
        // The last quarter of an eighth is for first keys alone, and the holders above took some of it.
        let newcomers = keys / 32 - holders
        #expect((0..<newcomers).allSatisfy { begins(-1 - $0) })
        #expect(!begins(0) && usage.used.keys <= keys)
    }

    @Test(
        "many holders with large responses leave others a first response, and refuse nobody a key",
        arguments: [20, 60, 100])
    func firstResponses(holders: Int) {
        var bounds = IdempotencyBounds()
        bounds.all.bytes = 64 << 20
        var usage = Usage()
        func isKept(_ holder: Int, bytes: Int) -> Bool {
            let scope = IdempotencyScope.account(Int64(holder))
            let room = bounds.room(for: scope, own: .none, held: usage[holder], used: usage.used)
            #expect(room.admits)
            let isKept = bounds.keepsResponse(
                for: scope, own: .none, held: usage[holder], used: usage.used)
            usage.add(IdempotencyUsage(keys: 1, bytes: isKept ? bytes : 0), to: holder)
            return isKept
        }
        for holder in 0..<holders { while isKept(holder, bytes: 8_000) {} }
        #expect((1...100).allSatisfy { isKept(-$0, bytes: 1_000) })
        #expect(!isKept(0, bytes: 8_000))
    }
}
