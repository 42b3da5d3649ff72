import CountersignWire

/// A JSON object that a command has printed, as pages read it.
struct ConsoleRecord: Sendable {
    private let document: JSONDocument
    private let value: JSON

    /// Nil for anything but an object.
    init?(_ bytes: [UInt8]) {
        var bounds = JSONReader.Bounds()
        bounds.bytes = 16 << 20
        guard let document = try? JSONReader.read(bytes, bounds: bounds), document.root.members != nil else {
            return nil
        }
        (self.document, value) = (document, document.root)
    }

    private init(_ value: JSON, of document: JSONDocument) { (self.document, self.value) = (document, value) }

    /// The object as it was printed.
    var bytes: [UInt8] { Array(document.bytes(of: value)) }

    /// A string, or a number as it is written; empty for `null` and for what is not there.
    func text(_ name: String) -> String { value[name].map(shown) ?? "" }

    func number(_ name: String) -> Int64? {
        value[name].flatMap { document.integer($0, in: Int.min...Int.max) }.map(Int64.init)
    }

    func isTrue(_ name: String) -> Bool {
        if case .bool(true)? = value[name]?.content { true } else { false }
    }

    func has(_ name: String) -> Bool {
        guard let member = value[name] else { return false }
        if case .null = member.content { return false }
        return true
    }

    func record(_ name: String) -> ConsoleRecord? {
        value[name].flatMap { $0.members == nil ? nil : ConsoleRecord($0, of: document) }
    }

    /// The objects of a list.
    func records(_ name: String) -> [ConsoleRecord] {
        (value[name]?.elements ?? []).map { ConsoleRecord($0, of: document) }
    }

    func texts(_ name: String) -> [String] { (value[name]?.elements ?? []).map(shown) }

    /// Each member with its value as text.
    var members: [(name: String, text: String)] {
        (value.members ?? []).map { ($0.name, shown($0.value)) }
    }

    private func shown(_ value: JSON) -> String {
        switch value.content {
        case .null: ""
        case .string(let text): text
        case .bool(let flag): flag ? "yes" : "no"
        case .array(let elements): elements.map(shown).joined(separator: ", ")
        case .number, .object: document.text(of: value)
        }
    }
}
