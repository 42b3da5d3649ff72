import CountersignGate
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignReplay

/// Names depend on the deployment and on nothing but the entry, and batches are in one order at every node.
@Suite struct PostgreSQLEntryNameTests {
    private func name(minute: Int64, high: UInt64, low: UInt64) -> PostgreSQLEntryName {
        PostgreSQLEntryName(minute: minute, high: high, low: low)
    }

    @Test func batchesAreSortedAndHaveEachNameOnce() {
        let names = [
            name(minute: 2, high: 0, low: 7), name(minute: 1, high: 1, low: 0),
            name(minute: 2, high: 0, low: 7), name(minute: 1, high: 0, low: 9),
            name(minute: 2, high: 0, low: 3),
        ]
        for order in [names, names.reversed()] {
            let batches = PostgreSQLEntryName.batches(of: order)
            #expect(batches.map(\.minute) == [1, 2])
            let back = batches.flatMap { PostgreSQLEntryName.names(in: $0.names, of: $0.minute) }
            #expect(
                back == [
                    name(minute: 1, high: 0, low: 9), name(minute: 1, high: 1, low: 0),
                    name(minute: 2, high: 0, low: 3), name(minute: 2, high: 0, low: 7),
                ])
        }
        #expect(PostgreSQLEntryName.batches(of: []).isEmpty)
    }

    @Test("bytes of another length are no more names", arguments: [0, 1, 15, 17, 31])
    func lengths(_ count: Int) {
        let bytes = [UInt8](repeating: 0xFF, count: count)
        let names = PostgreSQLEntryName.names(in: bytes, of: 1)
        #expect(
            names.count == count / 16 && names.allSatisfy { $0 == name(minute: 1, high: .max, low: .max) })
    }

    @Test func namesAreKeyed() {
        let hashes = [1, 1, 2].map { byte in
            KeyedHash(
                Secret(copying: [UInt8](repeating: byte, count: 32).span), for: "postgres replay entries")
        }
        let names = hashes.map { PostgreSQLEntryName(entry("n", created: 119), by: $0) }
        #expect(names[0] == names[1] && names[0] != names[2] && names[0].minute == 1)
        #expect(PostgreSQLEntryName(entry("n", created: 120), by: hashes[0]).minute == 2)
    }
}
