import CountersignAuthority
import CountersignGate
import CountersignWire
import Foundation
import Testing

@testable import CountersignServer

/// What the data folder keeps of a server's clock. Only a file that does not exist counts as absent.
@Suite("Record of the clock") final class ClockRecordTests {
    private let path = FileManager.default.temporaryDirectory.appendingPathComponent(
        "clock-record-\(UUID().uuidString)"
    ).path
    private var file: String { "\(path)/clock" }

    private func folder() throws -> DataFolder { try DataFolder(path, absence: .create) }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    private enum Content: CaseIterable { case text, oversized, folder, danglingLink, loop }

    private func make(_ content: Content) throws {
        let files = FileManager.default
        switch content {
        case .text: try Data("{".utf8).write(to: URL(fileURLWithPath: file))
        case .oversized: try Data(repeating: 0x7B, count: 5_000).write(to: URL(fileURLWithPath: file))
        case .folder: try files.createDirectory(atPath: file, withIntermediateDirectories: false)
        case .danglingLink: try files.createSymbolicLink(atPath: file, withDestinationPath: "\(path)/none")
        case .loop: try files.createSymbolicLink(atPath: file, withDestinationPath: file)
        }
    }

    @Test("a record is read as it was written")
    func roundTrip() {
        let steps = ClockTrust.FirstSteps(until: 1_600_000, left: 10_000)
        for (mark, firstSteps) in [(ClockTrust.Mark(wall: 5, uptime: 7), steps), (nil, nil)] {
            let record = ClockRecord(
                boot: "boot",
                trust: ClockTrust(
                    mark: mark, agreesSince: mark?.uptime, isTrusted: mark != nil, lastTrusted: 9,
                    firstSteps: firstSteps), confirmation: 3)
            #expect(ClockRecord(record.bytes) == record)
        }
        let text = #"{"boot":"b","trusted":1,"last_trusted":1,"confirmation":0,"first_steps_left":-1}"#
        #expect(ClockRecord(Array(text.utf8)) == nil)
    }

    @Test("what cannot be read is a doubt", arguments: Content.allCases)
    private func unreadable(_ content: Content) throws {
        let folder = try folder()
        #expect(ClockRecord.find(in: folder) == .absent)
        try make(content)
        let found = ClockRecord.find(in: folder)
        guard content != .danglingLink else {
            #expect(found == .absent)
            return
        }
        guard case .unreadable(let reason) = found else {
            Issue.record("\(found)")
            return
        }
        #expect(reason.contains(file))
        // A server trusts its clock after ten minutes; a command has nothing to wait for.
        var beginning = ClockTrust.Beginning(found, boot: "boot")
        let reading = ClockTrust.Reading(wall: 1_800_000_000_000, uptime: 1_000_000)
        let server = ClockTrust(beginning, reading: reading)
        #expect(!server.isTrusted && server.doubt == nil)
        beginning.isWatched = false
        #expect(ClockTrust(beginning, reading: reading).doubt == .recordUnreadable)
        // The database's clock tells.
        beginning.needsStore = true
        var beside = reading
        beside.store = reading.wall
        #expect(ClockTrust(beginning, reading: beside).doubt == nil)
    }
}
