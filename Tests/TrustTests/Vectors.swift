import Foundation

/// Reads `Vectors/` beside this package's tests.
enum Vectors {
    static func load<File: Decodable>(_ path: String, as type: File.Type) throws -> File {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Vectors")
        return try JSONDecoder().decode(File.self, from: Data(contentsOf: folder.appending(path: path)))
    }
}
