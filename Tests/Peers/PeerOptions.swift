/// `--name value …`, of which a name may be repeated.
struct PeerOptions {
    private var values: [String: [String]] = [:]

    init(_ arguments: [String]) {
        for index in stride(from: 0, to: arguments.count - 1, by: 2) {
            values[String(arguments[index].dropFirst(2)), default: []].append(arguments[index + 1])
        }
    }

    /// The last value; empty if there is none.
    subscript(name: String) -> String { values[name]?.last ?? "" }

    func all(_ name: String) -> [String] { values[name] ?? [] }
    func port(_ name: String) -> UInt16 { UInt16(self[name]) ?? 0 }
}
