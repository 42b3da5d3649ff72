import CountersignWire

/// What an answer looks like, feature by feature, so that two can be compared in each.
struct AnswerFeatures {
    private(set) var values: [String: String] = [:]
    private let step: Int

    /// `step` tells the answers of one login apart.
    init(_ response: RawResponse, step: Int) {
        self.step = step
        add("status", "\(response.status)")
        add("fields", response.fields.lines.map { $0.name.lowercased() }.joined(separator: " "))
        for line in response.fields.lines {
            add("field \(line.name.lowercased())", line.value)
            add("length of field \(line.name.lowercased())", "\(line.value.utf8.count)")
        }
        add("body", response.text)
        add("length of the body", "\(response.body.count)")
        if let document = try? JSONReader.read(response.body) { add(document.root, of: document, named: "body") }
    }

    private mutating func add(_ feature: String, _ value: String) { values["\(step) \(feature)"] = value }

    private mutating func add(_ value: JSON, of document: JSONDocument, named name: String) {
        add("kind of \(name)", value.kind)
        add(name == "body" ? "members" : "value of \(name)", document.text(of: value))
        add("length of \(name)", "\(document.text(of: value).utf8.count)")
        guard let members = value.members else { return }
        add("members of \(name)", members.map(\.name).joined(separator: " "))
        for member in members { add(member.value, of: document, named: "\(name).\(member.name)") }
    }
}
