import CountersignWire

/// The members that auth-v4 signs in a JSON body, computed with the tree parser: names in lower case, and
/// values without their type.
enum JSONMeaning {
    /// Nil if the text is no object, or cannot be signed.
    static func members(of body: [UInt8]) -> [[UInt8]: [UInt8]]? {
        guard let document = try? JSONReader.read(body), let members = document.root.members else {
            return nil
        }
        var found: [[UInt8]: [UInt8]] = [:]
        for member in members {
            let name = Array(member.name.utf8).map(ASCII.lowercased)
            guard found.updateValue(value(member.value, document), forKey: name) == nil else { return nil }
        }
        return found
    }

    private static func value(_ value: JSON, _ document: JSONDocument) -> [UInt8] {
        switch value.content {
        case .null: return []
        case .bool(let flag): return Array((flag ? "1" : "0").utf8)
        case .string(let text): return Array(text.utf8)
        case .array(let elements) where elements.isEmpty: return []
        case .object(let members) where members.isEmpty: return []
        case .number, .array, .object: return Array(document.bytes(of: value))
        }
    }
}
