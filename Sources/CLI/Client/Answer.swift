import CountersignWire

/// Shows an answer: as it comes, or whole, as JSON.
final class Answer {
    private let run: Invocation
    private var head: [UInt8] = []
    /// All of the body for JSON; otherwise its beginning.
    private var body: [UInt8] = []

    /// Enough to see what a legacy answer says.
    private static let beginning = 65_536
    private static let most = 256 << 20

    init(_ run: Invocation) { self.run = run }

    private var isJSON: Bool { run.arguments.has("json") }

    func take(head bytes: [UInt8]) throws(Fault) {
        head = bytes
        if !isJSON, run.arguments.has("include") { try run.console.write(bytes) }
    }

    func take(body bytes: [UInt8]) throws(Fault) {
        if isJSON {
            guard body.count + bytes.count <= Answer.most else {
                throw Fault(.failed, "the answer is over \(Answer.most) bytes; without --json it has no bound")
            }
            body += bytes
        } else {
            body += bytes.prefix(Answer.beginning - body.count)
            try run.console.write(bytes)
        }
    }

    func finish(_ status: Int) throws(Fault) {
        guard isJSON else { return }
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n").dropFirst()
        let fields = lines.map { line -> JSONValue in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count > 1 ? parts[1].drop { $0 == " " } : ""
            return ["name": .string(String(parts[0])), "value": .string(String(value))]
        }
        let body = body
        let json: JSONValue = [
            "status": .integer(Int64(status)), "headers": .array(fields),
            "body": .optional(String(validating: body, as: UTF8.self)),
            "body_base64url": .string(Base64.encode(body.span, .url)),
        ]
        try run.console.print(json.prettyText)
    }

    /// form-md5 answers carry their refusals inside a 200.
    var isLegacyError: Bool {
        guard let document = try? JSONReader.read(body) else { return false }
        return document.root["err"]?["code"] != nil
    }
}
