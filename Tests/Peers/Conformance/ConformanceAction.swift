import CountersignWire

/// One line of the driver's protocol. Source: docs/conformance.md.
struct ConformanceAction {
    private let document: JSONDocument

    init(_ document: JSONDocument) { self.document = document }

    /// A member that is text; empty if it is missing.
    subscript(name: String) -> String { document.root[name]?.string ?? "" }

    var isOnce: Bool { if case .bool(true)? = document.root["once"]?.content { true } else { false } }

    var fields: [(String, String)] {
        (document.root["fields"]?.members ?? []).map { ($0.name, $0.value.string ?? "") }
    }

    var body: [UInt8] { Base64.decode(self["body"], as: .url) ?? [] }

    func texts(_ name: String) -> [String] { (document.root[name]?.elements ?? []).compactMap(\.string) }

    /// Whole seconds, up to a day.
    func seconds(_ name: String) -> Int64 {
        Int64(document.root[name].flatMap { document.integer($0, in: -86_400...86_400) } ?? 0)
    }
}
