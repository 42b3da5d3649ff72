import CountersignWire
import Glibc

/// The permanent id of one replay file. The store keeps it, so that a missing file is detected.
package struct ReplayFileID: Sendable, Equatable, CustomStringConvertible {
    private let bytes: InlineArray<16, UInt8>

    init(_ bytes: InlineArray<16, UInt8>) { self.bytes = bytes }

    /// Nil unless it is 32 lower-case hexadecimal digits, as `description` gives them.
    package init?(_ text: String) {
        guard let decoded = Hex.decode(text), decoded.count == 16 else { return nil }
        bytes = InlineArray { decoded[$0] }
    }

    package var description: String { Hex.encode(bytes.span) }

    package static func == (left: ReplayFileID, right: ReplayFileID) -> Bool {
        left.bytes.span.matches(right.bytes.span)
    }
}

/// What was found when a replay file was opened; the server logs it.
package struct ReplayFileReport: Sendable, Equatable {
    package enum Condition: String, Sendable {
        case firstStart = "no replay file, and none was expected: the first start"
        case intact = "the replay file as it was left"
        case rebooted = "the machine has been restarted: entries may have been lost with its memory"
        case missing = "the replay file that the store remembers is gone"
        case another = "another replay file than the store remembers"
        case corrupt = "the replay file was damaged, and has been replaced"
    }

    package var condition: Condition
    /// Signatures made at or before this time (Unix seconds) are refused; nil for no bound.
    package var floor: Int64?
    /// The id for the store to keep.
    package var id: ReplayFileID
}

/// Opens a replay file and decides which entries may have been lost.
struct ReplayFileOpener {
    let table: ReplayTable
    let report: ReplayFileReport

    init(
        path: String, expecting: ReplayFileID?, settings: ReplayFile.Settings, mostRows: Int, isShared: Bool,
        refused: TimeIntervals, now: Int64
    ) throws(OperationalError) {
        let most = ReplayTable.fileBytes(rows: mostRows)
        if isShared {
            // The process that hands over has the file open and has decided already.
            guard case .table(let existing) = try ReplayFileOpener.openExisting(at: path, growingTo: most)
            else {
                throw OperationalError(.failed, message: "\(path): damaged while another process uses it")
            }
            table = existing
            report = ReplayFileReport(
                condition: .intact, floor: existing.header.floor > 0 ? existing.header.floor : nil,
                id: existing.header.fileID)
            return
        }
        let bootID = try Array(MachineBoot.currentID(in: settings.bootIDPath).utf8)
        let found: ReplayFileReport.Condition
        switch try ReplayFileOpener.openExisting(at: path, growingTo: most) {
        case .table(let existing):
            table = existing
            // A killed process may not have cleared what its last split moved.
            for shard in 0..<ShardLocks.count { table.removeMoved(shard) }
            let isOurs = expecting.map { $0 == existing.header.fileID } ?? true
            found = !isOurs ? .another : existing.header.bootID == bootID ? .intact : .rebooted
        case .nothing:
            table = try ReplayFileOpener.createTable(at: path, settings: settings, maximumRows: mostRows)
            found = expecting == nil ? .firstStart : .missing
        case .damaged:
            table = try ReplayFileOpener.createTable(at: path, settings: settings, maximumRows: mostRows)
            found = .corrupt
        }
        let window = Int64(max(settings.window, 0))
        table.header.adopt(window: window, lifetime: Int64(max(settings.lifetime, 0)), now: now)
        // Set the refused intervals before reading the newest entry, which ignores entries in them.
        var allRefused = table.header.refused
        allRefused.add(refused)
        table.header.refused = allRefused
        switch found {
        case .firstStart, .intact: break
        case .rebooted, .missing, .another, .corrupt:
            // Signatures up to a window ahead of the clock may have been admitted before the crash, so the
            // floor must cover them. The time of the crash is unknown; the time of opening, which is later,
            // is used instead. The newest saved entry covers a clock that starts behind.
            let latest = max(now, table.newest)
            let (floor, overflow) = latest.addingReportingOverflow(window)
            table.header.floor = max(table.header.floor, overflow ? Int64.max : floor, table.header.horizon)
        }
        table.header.bootID = bootID
        try table.synchroniseHeader()
        let floor = table.header.floor
        report = ReplayFileReport(condition: found, floor: floor > 0 ? floor : nil, id: table.header.fileID)
    }

    private enum ExistingFile {
        case nothing, damaged
        case table(ReplayTable)
    }

    private static func openExisting(at path: String, growingTo most: Int) throws(OperationalError)
        -> ExistingFile
    {
        guard let mapping = try MappedFile(opening: path, growingTo: most) else { return .nothing }
        guard ReplayHeader(mapping.start).isWhole(size: mapping.size) else { return .damaged }
        return .table(ReplayTable(mapping))
    }

    /// Creates the file under another name and renames it: a crash must not leave an incomplete file.
    private static func createTable(
        at path: String, settings: ReplayFile.Settings, maximumRows mostRows: Int
    ) throws(OperationalError) -> ReplayTable {
        let place = path + ".new"
        let table = try ReplayTable.create(at: place, rows: rows(for: settings.entries), growingTo: mostRows)
        guard rename(place, path) == 0 else { throw OperationalError.system("rename \(place)", code: errno) }
        return table
    }

    /// The smallest power of two of rows that has room for that many entries.
    private static func rows(for entries: Int) -> Int {
        var rows = 1
        while rows * ReplayTable.rowEntries < entries, rows < 1 << 26 { rows *= 2 }
        return rows
    }

}

/// The kernel's id of this boot of the machine.
package enum MachineBoot {
    static let path = "/proc/sys/kernel/random/boot_id"

    /// 36 characters.
    package static func currentID(in path: String = path) throws(OperationalError) -> String {
        let file = try FileDescriptor(open: path, flags: O_RDONLY)
        var text = [UInt8](repeating: 0, count: 64)
        let count = text.withUnsafeMutableBytes { read(file.number, $0.baseAddress, $0.count) }
        guard count >= 36 else {
            throw OperationalError(.failed, message: "\(path): expected a boot id of 36 characters")
        }
        return String(decoding: text[..<36], as: UTF8.self)
    }
}
