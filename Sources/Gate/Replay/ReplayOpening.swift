import CountersignWire
import Glibc

/// Names one replay file for life. The store remembers it, so that a file that vanished is missed.
package struct FileID: Sendable, Equatable, CustomStringConvertible {
    private let bytes: InlineArray<16, UInt8>

    init(_ bytes: InlineArray<16, UInt8>) { self.bytes = bytes }

    /// Nil unless it is 32 lower-case hexadecimal digits, as `description` gives them.
    package init?(_ text: String) {
        guard let decoded = Hex.decode(text), decoded.count == 16 else { return nil }
        bytes = InlineArray { decoded[$0] }
    }

    package var description: String { Hex.encode(bytes.span) }

    package static func == (left: FileID, right: FileID) -> Bool { left.bytes.span.matches(right.bytes.span) }
}

/// What was found when a replay file was opened; the server logs it.
package struct OpenReport: Sendable, Equatable {
    package enum Found: String, Sendable {
        case firstStart = "no replay file, and none was expected: the first start"
        case intact = "the replay file as it was left"
        case rebooted = "the machine has been restarted: entries may have been lost with its memory"
        case missing = "the replay file that the store remembers is gone"
        case another = "another replay file than the store remembers"
        case corrupt = "the replay file was damaged, and has been replaced"
    }

    package var found: Found
    /// Signatures made at or before this (Unix seconds) are refused; nil where there is no such bound.
    package var floor: Int64?
    /// For the store to remember.
    package var id: FileID
}

/// Decides what a replay file can be trusted with.
struct ReplayOpening {
    let table: ReplayTable
    let report: OpenReport

    init(
        path: String, expecting: FileID?, settings: ReplayFile.Settings, mostRows: Int, isShared: Bool,
        refused: Intervals, now: Int64
    ) throws(Fault) {
        let most = ReplayTable.fileBytes(rows: mostRows)
        if isShared {
            // Another process has it open: nothing is decided anew.
            guard case .table(let existing) = try ReplayOpening.existing(path, growingTo: most) else {
                throw Fault(.failed, "\(path): damaged while another process uses it")
            }
            table = existing
            report = OpenReport(
                found: .intact, floor: existing.header.floor > 0 ? existing.header.floor : nil,
                id: existing.header.fileID)
            return
        }
        let bootID = try ReplayOpening.bootID(settings.bootIDPath)
        let found: OpenReport.Found
        switch try ReplayOpening.existing(path, growingTo: most) {
        case .table(let existing):
            table = existing
            // A process that was killed may have been about to.
            for shard in 0..<ShardLocks.count { table.removeMoved(shard) }
            let isOurs = expecting.map { $0 == existing.header.fileID } ?? true
            found = !isOurs ? .another : existing.header.bootID == bootID ? .intact : .rebooted
        case .nothing:
            table = try ReplayOpening.fresh(path, settings, mostRows)
            found = expecting == nil ? .firstStart : .missing
        case .damaged:
            table = try ReplayOpening.fresh(path, settings, mostRows)
            found = .corrupt
        }
        let window = Int64(max(settings.window, 0))
        table.header.adopt(window: window, lifetime: Int64(max(settings.lifetime, 0)), now: now)
        // Before the newest entry is asked for, which those that are refused do not count for.
        var allRefused = table.header.refused
        allRefused.add(refused)
        table.header.refused = allRefused
        switch found {
        case .firstStart, .intact: break
        case .rebooted, .missing, .another, .corrupt:
            // Signatures up to a window ahead of the clock may have been admitted, so all of those are too old now. The
            // time of opening serves for the time of the crash, which is earlier, and which nobody knows; the newest
            // entry that was saved helps where the clock starts behind.
            let latest = max(now, table.newest)
            let (floor, overflow) = latest.addingReportingOverflow(window)
            table.header.floor = max(table.header.floor, overflow ? Int64.max : floor, table.header.horizon)
        }
        table.header.bootID = bootID
        try table.synchroniseHeader()
        let floor = table.header.floor
        report = OpenReport(found: found, floor: floor > 0 ? floor : nil, id: table.header.fileID)
    }

    private enum Existing {
        case nothing, damaged
        case table(ReplayTable)
    }

    private static func existing(_ path: String, growingTo most: Int) throws(Fault) -> Existing {
        guard let mapping = try Mapping(opening: path, growingTo: most) else { return .nothing }
        guard ReplayHeader(mapping.start).isWhole(size: mapping.size) else { return .damaged }
        return .table(ReplayTable(mapping))
    }

    /// Made aside and renamed: a crash in between must not leave half a file.
    private static func fresh(
        _ path: String, _ settings: ReplayFile.Settings, _ mostRows: Int
    ) throws(Fault) -> ReplayTable {
        let place = path + ".new"
        let table = try ReplayTable.create(at: place, rows: rows(for: settings.entries), growingTo: mostRows)
        guard rename(place, path) == 0 else { throw Fault.system("rename \(place)", code: errno) }
        return table
    }

    /// The power of two that has room for so many entries.
    private static func rows(for entries: Int) -> Int {
        var rows = 1
        while rows * ReplayTable.rowEntries < entries, rows < 1 << 26 { rows *= 2 }
        return rows
    }

    private static func bootID(_ path: String) throws(Fault) -> [UInt8] {
        let file = try FileDescriptor(open: path, O_RDONLY)
        var text = [UInt8](repeating: 0, count: 64)
        let count = text.withUnsafeMutableBytes { read(file.number, $0.baseAddress, $0.count) }
        guard count >= 36 else { throw Fault(.failed, "\(path): expected a boot id of 36 characters") }
        return Array(text[..<36])
    }
}
