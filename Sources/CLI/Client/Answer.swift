import CountersignWire

/// Shows an answer: as it comes, or whole, as JSON.
final class Answer {
    private let run: Invocation
    private var head: [UInt8] = []
    /// All of the body for JSON; otherwise its beginning.
    private var body: [UInt8] = []

    private var isWhole = true
    /// How much of the body is kept: all that a signature may be of, within reason, or enough for a look.
    private let keeping: Int

    /// What becomes of the body once it was shown.
    enum Keeping { case toVerify, beginning }

    /// When it is shown.
    enum Showing {
        case asItComes
        /// A refusal waits until it is known that the request is not sent again.
        case refusalsLast
    }

    private let showing: Showing
    private var isHeld = false
    /// Makes visible what a terminal would obey. A file, or another program, gets the bytes as they came.
    private var visible = VisibleText()

    /// Enough to see what a legacy answer says.
    private static let beginning = 65_536
    private static let most = 256 << 20
    private static let mostVerified = 16 << 20

    init(_ run: Invocation, _ keeping: Keeping, showing: Showing = .asItComes) {
        self.run = run
        self.showing = showing
        self.keeping = keeping == .toVerify ? Answer.mostVerified : Answer.beginning
    }

    private var isJSON: Bool { run.arguments.has("json") }

    func take(head bytes: [UInt8]) throws(Fault) {
        head = bytes
        isHeld = showing == .refusalsLast && AnswerHead.status(head) >= 400
        if !isHeld, !isJSON, run.arguments.has("include") { try show(bytes) }
    }

    func take(body bytes: [UInt8]) throws(Fault) {
        if isJSON || isHeld {
            guard body.count + bytes.count <= Answer.most else {
                throw Fault(.failed, "the answer is over \(Answer.most) bytes; without --json it has no bound")
            }
            body += bytes
        } else {
            let kept = bytes.prefix(keeping - body.count)
            if kept.count < bytes.count { isWhole = false }
            body += kept
            try show(bytes)
        }
    }

    private func show(_ bytes: [UInt8]) throws(Fault) {
        try run.console.write(run.console.isTerminal ? visible.take(bytes) : bytes)
    }

    /// As a signature sees it; nil where the body was too long to be kept.
    func response(_ status: Int) -> Response? {
        guard isWhole else { return nil }
        return Response(status: status, fields: AnswerHead.fields(head), body: body)
    }

    func finish(_ status: Int) throws(Fault) {
        guard isJSON else {
            if isHeld {
                if run.arguments.has("include") { try show(head) }
                try show(body)
            }
            try run.console.write(visible.finish())
            // The prompt would stand behind the body's last byte. A file gets the body as it came.
            if run.console.isTerminal, isWhole, let last = body.last, last != 0x0A { try run.console.print("") }
            return
        }
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

/// The head of an answer, as libcurl hands it over.
enum AnswerHead {
    /// 0 where there is none.
    static func status(_ head: [UInt8]) -> Int {
        let words = String(decoding: head.prefix(32), as: UTF8.self).split(separator: " ")
        return words.count > 1 ? Int(words[1].prefix(3)) ?? 0 : 0
    }

    static func fields(_ head: [UInt8]) -> [Draft.Field] {
        String(decoding: head, as: UTF8.self).split(separator: "\r\n").dropFirst().compactMap { line in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return Draft.Field(String(line[..<colon]), trimmed(line[line.index(after: colon)...]))
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text.drop { $0 == " " || $0 == "\t" }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return String(text)
    }
}
