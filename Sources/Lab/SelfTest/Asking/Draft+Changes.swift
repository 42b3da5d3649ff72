import CountersignWire

/// What an attacker does to a request that is signed. A change that finds nothing to change is a fault: what was not staged was not
/// withstood.
extension Draft {
    var text: String { String(decoding: target, as: UTF8.self) }

    mutating func replace(_ old: String, by new: String, inField name: String) throws(Fault) {
        for index in fields.indices where fields[index].isNamed(name) {
            let value = String(decoding: fields[index].value, as: UTF8.self)
            fields[index].value = Array(try value.replacing(old, by: new, in: name).utf8)
            return
        }
        throw Fault(.failed, "cannot be staged: the request has no field \(name)")
    }

    mutating func replaceInTarget(_ old: String, by new: String) throws(Fault) {
        target = Array(try text.replacing(old, by: new, in: "the target").utf8)
    }

    mutating func replaceInBody(_ old: String, by new: String) throws(Fault) {
        body = Array(try String(decoding: body, as: UTF8.self).replacing(old, by: new, in: "the body").utf8)
    }

    /// Of the first field of that name.
    func value(of name: String) -> String? {
        fields.first { $0.isNamed(name) }.map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// The path without its query.
    var path: String { String(text.prefix { $0 != "?" }) }
}

extension String {
    /// In the first place where `old` stands.
    func replacing(_ old: String, by new: String, in place: String) throws(Fault) -> String {
        guard contains(old) else { throw Fault(.failed, "cannot be staged: `\(old)` does not stand in \(place)") }
        return replacing(old, with: new, maxReplacements: 1)
    }

    /// What stands behind `mark`, up to the first of `ends`.
    func part(after mark: String, upTo ends: Set<Character>) -> String? {
        guard let range = firstRange(of: mark) else { return nil }
        return String(self[range.upperBound...].prefix { !ends.contains($0) })
    }
}
