import CountersignWire

/// The ways in which common libraries write the same JSON value.
struct JSONVariants {
    private let layout: Layout
    private let escape: Escape
    /// Deep indentation may make many times the body.
    private let mostBytes: Int
    private var text: [UInt8] = []

    /// The most bytes that all variants together have; none where the body is no JSON, or too large.
    static func work(on body: [UInt8]) -> Int {
        let first = body.trimmed.first
        guard body.count <= ExplanationBudget.largestBody, first == 0x7B || first == 0x5B else { return 0 }
        return 128 * body.count + 1_024
    }

    /// Spellings other than the one given; none where the bytes are no JSON, or many.
    static func variants(of body: [UInt8]) -> [[UInt8]] {
        var bytesLeft = work(on: body)
        guard bytesLeft > 0, let document = try? JSONReader.read(body) else { return [] }
        var found: [[UInt8]] = []
        for order in [Order.asSent, .byName] {
            let root = Node(document.root, of: document, order: order)
            for layout in Layout.all {
                for escape in Escape.others(than: body) {
                    var writer = JSONVariants(
                        layout: layout, escape: escape, mostBytes: min(4 * body.count + 128, bytesLeft))
                    writer.write(root, level: 0)
                    bytesLeft -= min(writer.text.count, bytesLeft)
                    if writer.text.count <= writer.mostBytes, writer.text != body {
                        found.append(writer.text)
                    }
                }
            }
        }
        return found
    }

    private enum Order { case asSent, byName }

    /// `\/`, `\u00e9`, and what is escaped for HTML's sake.
    private enum Escape {
        case least, slashes, beyondASCII, both, html

        /// Those that write the body's strings in different ways.
        static func others(than body: [UInt8]) -> [Escape] {
            let isEscaped = body.contains(UInt8(ascii: "\\"))
            let hasSlashes = isEscaped || body.contains(.slash)
            let isBeyondASCII = isEscaped || body.contains { $0 >= 0x80 }
            let isHTML = isEscaped || body.contains { [UInt8]("<>&").contains($0) }
            return [.least] + (hasSlashes ? [.slashes] : []) + (isBeyondASCII ? [.beyondASCII] : [])
                + (hasSlashes && isBeyondASCII ? [.both] : []) + (isHTML ? [.html] : [])
        }
    }

    /// White space as the libraries have it: none; Python's; indented by two or four spaces or a tab.
    private struct Layout {
        var comma: [UInt8] = [UInt8](",")
        var colon: [UInt8] = [UInt8](":")
        var indent: [UInt8]?

        static let all = [
            Layout(), Layout(comma: [UInt8](", "), colon: [UInt8](": ")),
            Layout(colon: [UInt8](": "), indent: [UInt8]("  ")),
            Layout(colon: [UInt8](": "), indent: [UInt8]("    ")),
            Layout(colon: [UInt8](": "), indent: [UInt8]("\t")),
            Layout(colon: [UInt8](" : "), indent: [UInt8]("  ")),
        ]
    }

    /// A value with its members in the order in which they are written.
    private enum Node {
        case string(String)
        case array([Node])
        case object([(name: String, value: Node)])
        case written([UInt8])

        init(_ value: JSON, of document: JSONDocument, order: Order) {
            switch value.content {
            case .string(let text): self = .string(text)
            case .array(let elements):
                self = .array(elements.map { Node($0, of: document, order: order) })
            case .object(let members):
                let ordered =
                    order == .asSent
                    ? members : members.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
                self = .object(ordered.map { ($0.name, Node($0.value, of: document, order: order)) })
            case .null, .bool, .number: self = .written(Array(document.bytes(of: value)))
            }
        }
    }
}

extension JSONVariants {
    private mutating func write(_ node: Node, level: Int) {
        guard text.count <= mostBytes else { return }
        switch node {
        case .string(let string): quote(string)
        case .written(let bytes): text += bytes
        case .array(let elements):
            list(elements, open: "[", close: "]", level: level) { $0.write($1, level: level + 1) }
        case .object(let members):
            list(members, open: "{", close: "}", level: level) { writer, member in
                writer.quote(member.name)
                writer.text += writer.layout.colon
                writer.write(member.value, level: level + 1)
            }
        }
    }

    private mutating func list<Element>(
        _ elements: [Element], open: Unicode.Scalar, close: Unicode.Scalar, level: Int,
        write: (inout JSONVariants, Element) -> Void
    ) {
        text.append(UInt8(ascii: open))
        for (index, element) in elements.enumerated() {
            if index > 0 { text += layout.comma }
            startLine(level: level + 1)
            write(&self, element)
        }
        if !elements.isEmpty { startLine(level: level) }
        text.append(UInt8(ascii: close))
    }

    private mutating func startLine(level: Int) {
        guard let indent = layout.indent else { return }
        text.append(.newline)
        for _ in 0..<level { text += indent }
    }

    private mutating func quote(_ string: String) {
        text.append(UInt8(ascii: "\""))
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += [UInt8]("\\\"")
            case "\\": text += [UInt8]("\\\\")
            case "\n": text += [UInt8]("\\n")
            case "\r": text += [UInt8]("\\r")
            case "\t": text += [UInt8]("\\t")
            case "\u{8}": text += [UInt8]("\\b")
            case "\u{C}": text += [UInt8]("\\f")
            case "/" where escape == .slashes || escape == .both: text += [UInt8]("\\/")
            case "<" where escape == .html, ">" where escape == .html, "&" where escape == .html:
                text += JSONVariants.escaped(scalar)
            case "\0"..<" ": text += JSONVariants.escaped(scalar)
            case "\u{80}"... where escape == .beyondASCII || escape == .both:
                text += JSONVariants.escaped(scalar)
            default: text += scalar.utf8
            }
        }
        text.append(UInt8(ascii: "\""))
    }

    /// `\u00e9`, as one UTF-16 unit or two.
    private static func escaped(_ scalar: Unicode.Scalar) -> [UInt8] {
        String(scalar).utf16.flatMap { unit in
            let digits = String(unit, radix: 16)
            return [UInt8]("\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits)
        }
    }
}
