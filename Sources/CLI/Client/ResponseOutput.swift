import Countersign
import CountersignHTTP
import CountersignWire

/// Prints a response: as it comes, or whole, as JSON.
///
/// Safe to share: one task uses it, and the command's thread reads it after that task has ended.
final class ResponseOutput: @unchecked Sendable {
    private let run: Invocation
    /// 0 until the response has begun.
    private(set) var status = 0
    private var fields: [HeaderField] = []
    /// All of the body for JSON; otherwise its beginning.
    private var body: [UInt8] = []

    private var isWhole = true
    /// How much of the body is kept: all that a signature may be of, within reason, or enough for a look.
    private let keeping: Int

    /// What becomes of the body once it was shown.
    enum BodyRetention { case toVerify, beginning }

    /// Makes visible what a terminal would obey. A file, or another program, gets the bytes as they came.
    private var visible = VisibleText()

    /// Enough to see what a legacy answer says.
    private static let beginning = 65_536
    private static let most = 256 << 20
    private static let mostVerified = 16 << 20

    init(_ run: Invocation, keeping: BodyRetention) {
        self.run = run
        self.keeping = keeping == .toVerify ? ResponseOutput.mostVerified : ResponseOutput.beginning
    }

    private var isJSON: Bool { run.arguments.has("json") }

    func write(status: Int, fields: [HeaderField]) throws(OperationalError) {
        (self.status, self.fields) = (status, fields)
        if !isJSON, run.arguments.has("include") { try show(head) }
    }

    /// As it came, but for the reason, which means nothing and is the usual one. Source: RFC 9112 §4.
    private var head: [UInt8] {
        let reason = ReasonPhrase.of(status).map { "\($0)" } ?? ""
        var head = Array("HTTP/1.1 \(status) \(reason)\r\n".utf8)
        for field in fields { head += Array("\(field.name): ".utf8) + field.value + Array("\r\n".utf8) }
        return head + Array("\r\n".utf8)
    }

    func write(body bytes: [UInt8]) throws(OperationalError) {
        if isJSON {
            guard body.count + bytes.count <= ResponseOutput.most else {
                throw OperationalError(
                    .failed,
                    message: "the answer is over \(ResponseOutput.most) bytes; without --json it has no bound"
                )
            }
            body += bytes
        } else {
            let kept = bytes.prefix(keeping - body.count)
            if kept.count < bytes.count { isWhole = false }
            body += kept
            try show(bytes)
        }
    }

    private func show(_ bytes: [UInt8]) throws(OperationalError) {
        try run.console.write(run.console.isTerminal ? visible.take(bytes) : bytes)
    }

    /// As a signature sees it; nil where the body was too long to be kept.
    var response: Response? {
        guard isWhole else { return nil }
        return Response(status: status, fields: fields.map(Draft.Field.init), body: body)
    }

    func finish() throws(OperationalError) {
        guard isJSON else {
            try run.console.write(visible.finish())
            // The prompt would stand behind the body's last byte. A file gets the body as it came.
            if run.console.isTerminal, isWhole, let last = body.last, last != 0x0A {
                try run.console.print("")
            }
            return
        }
        let fields = fields.map { field -> JSONValue in
            ["name": .string(field.name), "value": .string(String(decoding: field.value, as: UTF8.self))]
        }
        let body = body
        let json: JSONValue = [
            "status": .integer(Int64(status)), "headers": .array(fields),
            "body": .optional(String(validating: body, as: UTF8.self)),
            "body_base64url": .string(Base64.encode(body.span, as: .url)),
        ]
        try run.console.print(json.prettyText)
    }

    /// form-md5 answers carry their refusals inside a 200.
    var isLegacyError: Bool {
        guard let document = try? JSONReader.read(body) else { return false }
        return document.root["err"]?["code"] != nil
    }
}

/// The notice in a response that the app's version will be retired. It is only a hint: an attacker on the
/// network path can add it to a backend's response.
enum UpdateHint {
    static func show(_ response: APIResponse, run: Invocation) {
        guard let text = response.value(of: "countersign-update"),
            // It goes to a terminal.
            text.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else { return }
        let parts = text.split(separator: ", ").map { part in
            guard part.hasPrefix("at="), let time = TimeText.unixSeconds(String(part.dropFirst(3))) else {
                return String(part)
            }
            return "at=\(TimeText.text(time))"
        }
        run.console.note("note: this version of the app will go (\(parts.joined(separator: ", ")))")
    }
}
