import CountersignWire

extension Command {
    static let version = Command(
        words: ["version"], summary: "say which version this is", options: [.json]
    ) { (run) throws(Fault) in
        try run.print(["version": .string(Product.version)]) { "countersign \(Product.version)" }
        return .success
    }
}

/// What this is.
enum Product {
    static let version = "0.1.0"
}
