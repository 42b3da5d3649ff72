import CountersignAuthority
import CountersignWire
import Glibc

/// Looks for texts in the database file: in all of it, or in the parts that no row uses. SQLite overwrites
/// deleted rows (`secure_delete`), but may leave a copy of a row where it moved rows from page to page.
///
/// Unused are the free pages, and in a page of a tree the space between the cells' places and the cells, and
/// the free blocks. An overflow page has none: it is empty before it is used. What the file says about itself
/// is checked before it is used, so a damaged one is read wrongly at worst. Source: SQLite's documentation,
/// "Database File Format", 1.5 and 1.6.
struct FileRemains {
    private let database: Database
    private let connection: SQLiteConnection
    private let texts: [[UInt8]]
    private let pageSize: Int
    private let pages: Int

    /// Empty texts are not looked for.
    init(
        of texts: [[UInt8]], in database: Database, through connection: SQLiteConnection
    ) throws(OperationalError) {
        self.database = database
        self.connection = connection
        self.texts = texts.filter { !$0.isEmpty }
        pageSize = Int(try database.integer("PRAGMA page_size") ?? 0)
        pages = Int(try database.integer("PRAGMA page_count") ?? 0)
    }

    var bytes: Int64 { Int64(pageSize) * Int64(pages) }

    func areAnywhere() throws(OperationalError) -> Bool {
        let chunk = 1 << 20
        let overlap = texts.map(\.count).max() ?? 0
        var buffer = [UInt8](repeating: 0, count: chunk + overlap)
        var offset: Int64 = 0
        while offset < bytes {
            guard connection.read(&buffer, at: offset) else { throw SQLiteResultCode.damaged(database.path) }
            if contains(buffer, in: 0..<buffer.count) { return true }
            offset += Int64(chunk)
        }
        return false
    }

    func areInUnusedParts() throws(OperationalError) -> Bool {
        guard pageSize >= 512, pages > 0 else { return false }
        var page = [UInt8](repeating: 0, count: pageSize)
        try read(1, into: &page)
        let usable = pageSize - Int(page[20])
        let free = try freePages(from: FileRemains.number(page, at: 32, count: 4))
        for number in 1...pages {
            try read(number, into: &page)
            if free.contains(number) {
                if contains(page, in: 0..<page.count) { return true }
            } else {
                let header = number == 1 ? 100 : 0
                for part in FileRemains.unusedParts(of: page, header: header, usable: usable)
                where contains(page, in: part) { return true }
            }
        }
        return false
    }

    private func read(_ number: Int, into page: inout [UInt8]) throws(OperationalError) {
        guard connection.read(&page, at: Int64(number - 1) * Int64(pageSize)) else {
            throw SQLiteResultCode.damaged(database.path)
        }
    }

    /// The pages of the list of free ones, which begins with its first trunk.
    private func freePages(from first: Int) throws(OperationalError) -> Set<Int> {
        var free: Set<Int> = []
        var trunk = first
        var page = [UInt8](repeating: 0, count: pageSize)
        while (2...pages).contains(trunk), free.insert(trunk).inserted {
            try read(trunk, into: &page)
            let count = min(FileRemains.number(page, at: 4, count: 4), pageSize / 4 - 2)
            for leaf in 0..<max(count, 0) {
                free.insert(FileRemains.number(page, at: 8 + 4 * leaf, count: 4))
            }
            trunk = FileRemains.number(page, at: 0, count: 4)
        }
        return free
    }

    /// Of a page of a table's or an index's tree; none of other pages.
    private static func unusedParts(of page: [UInt8], header: Int, usable: Int) -> [Range<Int>] {
        let head: Int
        switch page[header] {
        case 0x02, 0x05: head = 12
        case 0x0A, 0x0D: head = 8
        default: return []
        }
        var parts: [Range<Int>] = []
        let cells = header + head + 2 * number(page, at: header + 3, count: 2)
        let content = number(page, at: header + 5, count: 2)
        let end = min(content == 0 ? 65_536 : content, page.count)
        if cells < end { parts.append(cells..<end) }
        var block = number(page, at: header + 1, count: 2)
        // Blocks are in ascending order, the first four bytes of each being its place in the list.
        while block > header, block + 4 <= usable {
            let next = number(page, at: block, count: 2)
            let last = min(block + number(page, at: block + 2, count: 2), page.count)
            if block + 4 < last { parts.append(block + 4..<last) }
            guard next > block else { break }
            block = next
        }
        return parts
    }

    private static func number(_ page: [UInt8], at place: Int, count: Int) -> Int {
        page[place..<place + count].reduce(0) { $0 << 8 | Int($1) }
    }

    private func contains(_ bytes: [UInt8], in part: Range<Int>) -> Bool {
        bytes.withUnsafeBytes { bytes in
            let part = UnsafeRawBufferPointer(rebasing: bytes[part])
            return texts.contains { text in text.withUnsafeBytes { FileRemains.contains($0, in: part) } }
        }
    }

    private static func contains(_ text: UnsafeRawBufferPointer, in part: UnsafeRawBufferPointer) -> Bool {
        guard let first = text.first, var place = part.baseAddress, let textStart = text.baseAddress else {
            return false
        }
        let end = place + part.count
        while end - place >= text.count {
            let last = end - place - text.count + 1
            guard let found = memchr(place, Int32(first), last) else { return false }
            if memcmp(found, textStart, text.count) == 0 { return true }
            place = UnsafeRawPointer(found) + 1
        }
        return false
    }
}
