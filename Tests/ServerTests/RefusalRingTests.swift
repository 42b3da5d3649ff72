// Proves that a ring of refused requests finds each of the latest by its id, walks from the newest to the
// oldest, survives a restart, and that callers without proof displace none with proof.
import CountersignWire
import Foundation
import Testing

@testable import CountersignServer

@Suite("Rings of refused requests") struct RefusalRingTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "ring-\(UUID().uuidString)")

    init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

    private func path(_ name: String) -> String { folder.appending(path: name).path }

    private func id(_ number: Int) -> (UInt64, UInt64) {
        var generator = SplitMix64(seed: UInt64(number))
        return (generator.next(), generator.next())
    }

    /// Of one slot up to the longest.
    private func bytes(_ number: Int) -> [UInt8] {
        let length = [0, 1, 455, 456, 457, 960, 961, 5_000, RefusalRing.longestRecord][number % 9]
        return [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: length)
    }

    @Test func theLatestAreFoundByTheirIDs() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let ring = try RefusalRing(path("a"), bytes: 1 << 20)
        for number in 0..<3_000 {
            #expect(ring.append(bytes(number), id: id(number), at: Int64(number)))
        }
        var walked: [Int64] = []
        ring.walk(atMost: 10_000) { record in
            walked.append(record.time)
            return true
        }
        #expect(walked.first == 2_999 && walked.count > 300)
        #expect(walked == Array((3_000 - Int64(walked.count)..<3_000).reversed()))
        #expect(ring.oldest == walked.last)
        // Nothing of it is lost before its turn; a bucket of the index may have displaced a few.
        let found = walked.count { time in
            guard let record = ring.record(of: id(Int(time))) else { return false }
            return record.time == time && record.bytes == bytes(Int(time))
        }
        #expect(found >= walked.count - walked.count / 50)
        #expect(ring.record(of: id(0)) == nil && ring.record(of: id(9_999)) == nil)
        #expect(!ring.append([UInt8](repeating: 0, count: RefusalRing.longestRecord + 1), id: id(1), at: 0))
    }

    @Test func aRestartFindsThem() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        do {
            let ring = try RefusalRing(path("a"), bytes: 1 << 20)
            for number in 0..<40 { _ = ring.append(bytes(number), id: id(number), at: Int64(number)) }
            // Another process reads what this one writes, and writes nothing itself.
            let reader = try RefusalRing(path("a"), bytes: 1 << 20)
            #expect(reader.record(of: id(39))?.bytes == bytes(39))
            #expect(!reader.append([1], id: id(7), at: 0))
        }
        let ring = try RefusalRing(path("a"), bytes: 1 << 20)
        #expect(ring.oldest == 0 && ring.record(of: id(5))?.bytes == bytes(5))
        #expect(ring.append([1], id: id(40), at: 40))
        var times: [Int64] = []
        ring.walk(atMost: 3) { record in
            times.append(record.time)
            return true
        }
        #expect(times == [40, 39, 38])
        // One of another size begins again.
        #expect(try RefusalRing(path("b"), bytes: 2 << 20).oldest == nil)
    }

    private func refusal(_ number: Int, code: String) -> RecentRefusal {
        var generator = SplitMix64(seed: UInt64(number))
        return RecentRefusal(
            event: EventID(&generator).text, code: code, line: Array("{\"n\":\(number)}\n".utf8),
            named: ("demo", "r_1"), search: .notMade, time: Int64(number))
    }

    @Test func theRingsHaveHalfOfTheRoomEach() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let bytes = 256 << 10
        let store = try RefusalStore(in: folder.path, bytes: bytes)
        try store.start()
        for number in 0..<2_000 { store.add(refusal(number, code: "stale"), isProven: number % 2 == 0) }
        store.stop()
        #expect(store.losses == 0)
        for name in ["refusals-proven", "refusals-unproven"] {
            let file = try FileManager.default.attributesOfItem(atPath: path(name))
            let size = try #require(file[.size] as? Int)
            #expect((bytes / 2 - 1_024...bytes / 2).contains(size), "\(name)")
        }
    }

    @Test func strangersDisplaceNoCallerWithProof() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let store = try RefusalStore(in: folder.path, bytes: 256 << 10)
        try store.start()
        store.add(refusal(1, code: "replayed"), isProven: true)
        for number in 2..<4_000 { store.add(refusal(number, code: "unsigned"), isProven: false) }
        store.stop()
        let refusals = RecentRefusals(store: try RefusalStore(in: folder.path, bytes: 256 << 10))
        let kept = try #require(refusals.refusal(of: refusal(1, code: "").event))
        #expect(kept.code == "replayed" && kept.time == 1 && kept.named?.release == "r_1")
        #expect(kept.line == Array("{\"n\":1}".utf8))
        let listing = refusals.report(atMost: 1)
        #expect(Set(listing.causes.keys) == ["replayed", "unsigned"])
        #expect(listing.causes["unsigned"]?.latest == 3_999)
        #expect(listing.refusals.map(\.time) == [3_999])
        #expect(refusals.report(of: RefusalFilter(code: "replayed"), atMost: 9).refusals.map(\.time) == [1])
        #expect(refusals.refusal(of: refusal(2, code: "").event) == nil, "the oldest gave way")
        #expect(refusals.refusal(of: "no id") == nil)
        #expect(refusals.store?.oldest.proven == 1)
    }

    @Test func aSearchReadsABoundedNumberOfRecords() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let bytes = 8 << 20
        do {
            let store = try RefusalStore(in: folder.path, bytes: bytes)
            try store.start()
            store.add(refusal(1, code: "stale"), isProven: true)
            store.stop()
        }
        for (number, found) in [(RefusalStore.mostRead - 1, 1), (1, 0)] {
            do {
                let ring = try RefusalRing(path("refusals-proven"), bytes: bytes / 2)
                for each in 0..<number { #expect(ring.append([], id: id(each + 2), at: 2)) }
            }
            let store = try RefusalStore(in: folder.path, bytes: bytes)
            #expect(store.latest(10) { _ in true }.count == found)
            #expect(store.refusal(of: refusal(1, code: "").event) != nil, "the index finds it all the same")
        }
    }

    @Test func aReaderFollowsAWriterAndWritesNothing() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        #expect(try RefusalStore(reading: folder.path) == nil, "nothing is kept yet")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        let ring = try RefusalRing(path("refusals-proven"), bytes: 1 << 20)
        let reader = try #require(try RefusalRing(reading: path("refusals-proven")))
        #expect(reader.oldest == nil && reader.record(of: id(1)) == nil)
        // Twice around the file: the reader never sees a record that it was not given.
        for number in 0..<3_000 {
            #expect(ring.append(bytes(number), id: id(number), at: Int64(number)))
            guard number % 100 == 0 else { continue }
            #expect(reader.record(of: id(number))?.bytes == bytes(number))
            var newest: Int64?
            reader.walk(atMost: 1) { record in
                newest = record.time
                return true
            }
            #expect(newest == Int64(number))
        }
        let store = try #require(try RefusalStore(reading: folder.path))
        #expect(store.oldest.proven == ring.oldest && store.oldest.unproven == nil)
        try Data("no ring".utf8).write(to: folder.appending(path: "refusals-unproven"))
        #expect(try RefusalRing(reading: path("refusals-unproven")) == nil)
        #expect(try RefusalStore(reading: folder.path) != nil)
    }

    @Test func listsAreFiltered() throws {
        let refusals = RecentRefusals()
        for (number, named) in [("demo", "r_1"), ("demo", "r_2"), ("shop", "r_3")].enumerated() {
            let line = Array("{\"claimed_app\":\"shop\"}".utf8)
            refusals.add(
                RecentRefusal(
                    event: "\(number)", code: number == 0 ? "stale" : "unsigned", line: line,
                    named: number == 2 ? nil : named, search: .notMade, time: Int64(number)))
        }
        func found(_ filter: RefusalFilter) -> [String] {
            refusals.report(of: filter, atMost: 9).refusals.map(\.event)
        }
        #expect(found(RefusalFilter()) == ["2", "1", "0"])
        #expect(found(RefusalFilter(app: "demo")) == ["1", "0"])
        #expect(found(RefusalFilter(app: "shop")) == ["2"], "by the line of the log")
        #expect(found(RefusalFilter(release: "r_2")) == ["1"])
        #expect(found(RefusalFilter(app: "demo", code: "stale")) == ["0"])
        #expect(found(RefusalFilter(app: "none")).isEmpty)
        let listing = refusals.report(atMost: 1)
        #expect(listing.refusals.count == 1 && listing.causes["unsigned"]?.count == 2, "all are counted")
    }
}
