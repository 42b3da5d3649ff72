/// `--name value …`
struct Options {
    private var values: [String: String] = [:]

    init(_ arguments: [String]) {
        for index in stride(from: 0, to: arguments.count - 1, by: 2) {
            values[String(arguments[index].dropFirst(2))] = arguments[index + 1]
        }
    }

    subscript(name: String) -> String { values[name] ?? "" }
}
