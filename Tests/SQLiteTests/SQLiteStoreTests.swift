import CountersignAuthority
import CountersignSQL
import CountersignWire
import Foundation
import StoreContract
import Testing

@Suite struct SQLiteStoreTests {
    private let folder: String
    private var path: String { "\(folder)/countersign.db" }

    init() throws {
        folder =
            FileManager.default.temporaryDirectory.appendingPathComponent("countersign-\(UUID().uuidString)")
            .path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    private func clean() { try? FileManager.default.removeItem(atPath: folder) }

    @Test func readingMakesNoFile() throws {
        defer { clean() }
        #expect(try SQLStore(path: path).apps().isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    }

    @Test(
        "a file that is no store of ours",
        arguments: [
            (
                Data(
                    """
                    this is a text, and longer than a hundred bytes, so that SQLite would look at the whole \
                    head of it..........
                    """
                    .utf8), "damaged"
            ),
            (Data([1]), "damaged"),
        ])
    func notADatabase(_ row: (content: Data, word: String)) throws {
        defer { clean() }
        #expect(FileManager.default.createFile(atPath: path, contents: row.content))
        let fault = #expect(throws: OperationalError.self) { try SQLStore(path: path).apps() }
        #expect(fault?.kind == .unreachable)
        #expect(fault?.message.contains(row.word) == true)
        #expect(fault?.message.contains(path) == true)
        #expect(FileManager.default.contents(atPath: path) == row.content)
    }

    @Test("damage in any page is found at opening")
    func damage() throws {
        defer { clean() }
        do {
            let store = SQLStore(path: path)
            try store.prepare()
            for number in 0..<200 {
                _ = try store.insert(
                    App(
                        name: #require(AppName("app-\(number)")), created: 1,
                        settings: ["forward": .text("x-\(number)")]), recording: .counting)
            }
        }
        let good = try #require(FileManager.default.contents(atPath: path))
        #expect(good.count > 3 * 4096)
        _ = try SQLStore(path: path).apps()
        for page in 1..<good.count / 4096 {
            var bad = good
            bad.replaceSubrange(page * 4096..<page * 4096 + 64, with: Data(repeating: 0xA5, count: 64))
            #expect(FileManager.default.createFile(atPath: path, contents: bad))
            let fault = #expect(throws: OperationalError.self, "page \(page)") {
                try SQLStore(path: path).apps()
            }
            #expect(fault?.message.contains("damaged") == true, "page \(page)")
        }
        #expect(FileManager.default.createFile(atPath: path, contents: good.prefix(good.count - 4096)))
        #expect(throws: OperationalError.self) { try SQLStore(path: path).apps() }
    }

    @Test func anotherProgramsDatabaseIsLeftAlone() throws {
        defer { clean() }
        do { try SQLStore(path: path).prepare() }
        // Source: sqlite.org/fileformat.html: the application id is at 68.
        var content = try #require(FileManager.default.contents(atPath: path))
        #expect(content[68..<72] == Data("CSN1".utf8))
        content.replaceSubrange(68..<72, with: [0, 0, 0, 1])
        #expect(FileManager.default.createFile(atPath: path, contents: content))
        let fault = #expect(throws: OperationalError.self) { try SQLStore(path: path).prepare() }
        #expect(fault?.message.contains("another program") == true)
        #expect(FileManager.default.contents(atPath: path) == content)
    }

    @Test func aNewerLayoutIsRefused() throws {
        defer { clean() }
        do { try SQLStore(path: path).prepare() }
        var content = try #require(FileManager.default.contents(atPath: path))
        // `user_version` is at 60.
        content.replaceSubrange(60..<64, with: [0, 0, 0, 200])
        #expect(FileManager.default.createFile(atPath: path, contents: content))
        let fault = #expect(throws: OperationalError.self) { try SQLStore(path: path).prepare() }
        #expect(fault?.message.contains("newer") == true)
    }

    @Test func twoWritersDoNotLoseAnything() async throws {
        defer { clean() }
        try SQLStore(path: path).prepare()
        let path = path
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask {
                    let store = SQLStore(path: path)
                    for number in 0..<10 {
                        guard let name = AppName("app-\(writer)-\(number)") else { return }
                        _ = try store.insert(App(name: name, created: 1), recording: .counting)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try SQLStore(path: path).apps().count == 40)
        #expect(try SQLStore(path: path).revision() == 40)
    }
}
