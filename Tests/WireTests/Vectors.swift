import Foundation
import Testing

/// Reads `Vectors/` beside this package's tests.
enum Vectors {
    static func load<Case: Decodable>(_ path: String, as type: Case.Type) throws -> [Case] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Vectors")
        let cases = try JSONDecoder().decode(
            VectorFile<Case>.self, from: Data(contentsOf: folder.appending(path: path))
        ).cases
        try #require(!cases.isEmpty, "\(path) has no cases")
        return cases
    }
}

private struct VectorFile<Case: Decodable>: Decodable { var cases: [Case] }
