import CountersignModel
import Foundation
import Testing

/// Random schedules over both ends of a refresh and a man in the middle: an honest client never loses its
/// session to messages, the second holder of a copied vault is found, and no fork lives. The long form is
/// `script/model`.
@Suite struct RefreshModelTests {
    /// Memory, where there is some: the store is synced at each write.
    private static var fast: URL {
        FileManager.default.isWritableFile(atPath: "/dev/shm")
            ? URL(fileURLWithPath: "/dev/shm") : FileManager.default.temporaryDirectory
    }

    @Test func noScheduleBreaksWhatHolds() async throws {
        let folder = RefreshModelTests.fast
            .appendingPathComponent("countersign-model-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let model = try RefreshModel(folder: folder)
        for seed in 1...150 as ClosedRange<UInt64> { try await model.run(seed: seed) }
        #expect(model.missing.isEmpty, "not reached: \(model.missing)")
    }

    @Test func aSeedGivesTheSameSchedule() async throws {
        var tallies: [[String: Int]] = []
        for _ in 0..<2 {
            let folder = RefreshModelTests.fast
                .appendingPathComponent("countersign-model-\(UUID().uuidString)").path
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let model = try RefreshModel(folder: folder)
            for seed in 1_000...1_019 as ClosedRange<UInt64> { try await model.run(seed: seed) }
            tallies.append(model.tally)
        }
        #expect(tallies[0] == tallies[1])
    }
}
