import Foundation

/// A folder of a test's own.
struct TestFolder {
    let path: String

    init() {
        path =
            FileManager.default.temporaryDirectory.appendingPathComponent("client-\(UUID().uuidString)").path
        try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    func remove() { try? FileManager.default.removeItem(atPath: path) }
}
