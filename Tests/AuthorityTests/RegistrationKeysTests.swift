// Proves that a rotated registration key still opens what was begun with it, for as long as that can be
// finished and no longer; that another process's memory follows; and that the former key leaves the store.

import CountersignSeal
import CountersignWire
import ScriptedClock
import Testing

@testable import CountersignAuthority

@Suite struct RegistrationKeysTests {
    private let folder = TemporaryFolder()
    private static let now: Int64 = 1_800_000_000
    private static let purpose = Array("a purpose".utf8)

    private func sealed(to key: [UInt8]) throws -> [UInt8] {
        try #require(SealedBox.seal(Secret(random: 8), to: key, for: Self.purpose))
    }

    @Test func theFormerKeyOpensForTenMinutes() throws {
        let (operating, serving) = (try deployment(folder.data), try deployment(folder.data))
        let keys = try RegistrationKeys(serving)
        let former = try keys.publicHalf()
        let begun = try sealed(to: former)
        try operating.rotateRegistrationKey(at: Self.now)
        let current = try keys.publicHalf()
        #expect(current != former, "a running server goes on with the former key")
        let (open, late) = (Self.now + 599, Self.now + 600)
        #expect(try keys.open(begun, for: Self.purpose, at: open) != nil)
        #expect(try keys.open(begun, for: Self.purpose, at: late) == nil)
        for time in [open, late] {
            #expect(try keys.open(sealed(to: current), for: Self.purpose, at: time) != nil)
        }
        // A process that starts in between.
        #expect(try RegistrationKeys(operating).open(begun, for: Self.purpose, at: open) != nil)
        let record = try #require(try operating.auditRecords(last: 1).last)
        #expect(String(decoding: record.record, as: UTF8.self).contains(#""registration-key.rotate""#))
    }

    @Test func theFormerKeyIsErased() throws {
        let deployment = try deployment(folder.data)
        let keys = try RegistrationKeys(deployment)
        let earlier = try #require(try deployment.store.value(of: .registrationKey))
        try deployment.rotateRegistrationKey(at: Self.now)
        let both = try #require(try deployment.store.value(of: .registrationKey))
        #expect(both.count == 2 * earlier.count + 8)
        try keys.eraseExpired(at: .at(Self.now + 599))
        #expect(try deployment.store.value(of: .registrationKey) == both)
        let current = try keys.publicHalf()
        try keys.eraseExpired(at: .at(Self.now + 600))
        let left = try #require(try deployment.store.value(of: .registrationKey))
        #expect(left.count == earlier.count)
        #expect(try keys.publicHalf() == current && RegistrationKeys(deployment).publicHalf() == current)
    }

    @Test("a second rotation erases the key before the former one")
    func twice() throws {
        let deployment = try deployment(folder.data)
        let keys = try RegistrationKeys(deployment)
        let first = try sealed(to: keys.publicHalf())
        try deployment.rotateRegistrationKey(at: Self.now)
        let second = try sealed(to: keys.publicHalf())
        try deployment.rotateRegistrationKey(at: Self.now)
        #expect(try keys.open(first, for: Self.purpose, at: Self.now) == nil)
        #expect(try keys.open(second, for: Self.purpose, at: Self.now) != nil)
    }

    @Test("each part is sealed anew for its own place, and a part that does not open is no part")
    func sealedAgain() throws {
        let deployment = try deployment(folder.data)
        let keys = try RegistrationKeys(deployment)
        let earlier = try #require(try deployment.store.value(of: .registrationKey))
        let begun = try sealed(to: keys.publicHalf())
        try deployment.rotateRegistrationKey(at: Self.now)
        let stored = try #require(try deployment.store.value(of: .registrationKey))
        func again(_ stored: [UInt8]) -> [UInt8]? {
            RegistrationScalars.sealAgain(stored) { (part, binding) in
                deployment.open(part, as: binding).map { deployment.seal($0, as: binding) }
            }
        }
        let sealed = try #require(again(stored))
        #expect(sealed != stored && again(Array(stored.dropLast())) == nil)
        #expect(again(earlier)?.count == earlier.count)
        try deployment.store.set(.registrationKey, to: sealed)
        let later = try RegistrationKeys(deployment)
        #expect(try later.publicHalf() == keys.publicHalf())
        #expect(try later.open(begun, for: Self.purpose, at: Self.now) != nil)
        var altered = stored
        altered[stored.count - 1] ^= 1
        #expect(again(altered) == nil)
    }

    @Test("parts that were cut, swapped or altered do not open")
    func alteredRow() throws {
        let deployment = try deployment(folder.data)
        _ = try RegistrationKeys(deployment)
        try deployment.rotateRegistrationKey(at: Self.now)
        let good = try #require(try deployment.store.value(of: .registrationKey))
        let each = (good.count - 8) / 2
        let (current, time, former) = (good[..<each], good[each..<each + 8], good[(each + 8)...])
        var later = good
        later[each + 7] ^= 1
        let altered: [[UInt8]] = [
            [], Array(former), Array(former + time + current), Array(current + time + current),
            Array(current + former), Array(good.dropLast()), later, good + [0],
        ]
        for row in altered {
            try deployment.store.set(.registrationKey, to: row)
            let fault = #expect(throws: OperationalError.self, "\(row.count) bytes") {
                try RegistrationKeys(deployment)
            }
            #expect(fault?.message.contains("altered") == true)
        }
        // The value of a version without rotation.
        try deployment.store.set(.registrationKey, to: Array(current))
        #expect(throws: Never.self) { try RegistrationKeys(deployment) }
    }
}
