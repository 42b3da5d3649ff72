import CountersignWire

/// The ways in which common libraries write the same JSON value.
struct JSONVariants {
    private let document: JSONDocument
    private let order: Order
    private let layout: Layout
    private let escape: Escape

    /// Spellings other than the one given; none where the bytes are no JSON, or many.
    static func variants(of body: [UInt8]) -> [[UInt8]] {
        guard body.count <= ExplanationBudget.largestBody, let first = body.trimmed.first,
            first == 0x7B || first == 0x5B,
            let document = try? JSONReader.read(body)
        else { return [] }
        var found: [[UInt8]] = []
        for order in [Order.asSent, .byName] {
            for layout in Layout.all {
                for escape in [Escape.least, .slashes, .beyondASCII, .both, .html] {
                    let writer = JSONVariants(
                        document: document, order: order, layout: layout, escape: escape)
                    found.append(writer.text(of: document.root, level: 0))
                }
            }
        }
        return found.filter { $0 != body }
    }

    private enum Order { case asSent, byName }

    /// `\/`, `\u00e9`, and what is escaped for HTML's sake.
    private enum Escape { case least, slashes, beyondASCII, both, html }

    /// White space as the libraries have it: none; Python's; indented by two or four spaces or a tab.
    private struct Layout {
        var comma = ","
        var colon = ":"
        var indent: String?

        static let all = [
            Layout(), Layout(comma: ", ", colon: ": "), Layout(colon: ": ", indent: "  "),
            Layout(colon: ": ", indent: "    "), Layout(colon: ": ", indent: "\t"),
            Layout(colon: " : ", indent: "  "),
        ]
    }
}

extension JSONVariants {
    private func text(of value: JSON, level: Int) -> [UInt8] {
        switch value.content {
        case .string(let text): return quoted(text)
        case .array(let elements):
            return list(elements.map { text(of: $0, level: level + 1) }, open: "[", close: "]", level: level)
        case .object(let members):
            let names =
                order == .asSent
                ? members : members.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
            return list(
                names.map { quoted($0.name) + [UInt8](layout.colon) + text(of: $0.value, level: level + 1) },
                open: "{", close: "}",
                level: level)
        case .null, .bool, .number: return Array(document.bytes(of: value))
        }
    }

    private func list(_ parts: [[UInt8]], open: String, close: String, level: Int) -> [UInt8] {
        guard !parts.isEmpty else { return [UInt8](open + close) }
        let inner = layout.indent.map { "\n" + String(repeating: $0, count: level + 1) } ?? ""
        let outer = layout.indent.map { "\n" + String(repeating: $0, count: level) } ?? ""
        let joined = parts.joined(separator: [UInt8](layout.comma + inner))
        return [UInt8](open + inner) + joined + [UInt8](outer + close)
    }

    private func quoted(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = [UInt8(ascii: "\"")]
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": bytes += [UInt8]("\\\"")
            case "\\": bytes += [UInt8]("\\\\")
            case "\n": bytes += [UInt8]("\\n")
            case "\r": bytes += [UInt8]("\\r")
            case "\t": bytes += [UInt8]("\\t")
            case "\u{8}": bytes += [UInt8]("\\b")
            case "\u{C}": bytes += [UInt8]("\\f")
            case "/" where escape == .slashes || escape == .both: bytes += [UInt8]("\\/")
            case "<" where escape == .html, ">" where escape == .html, "&" where escape == .html:
                bytes += JSONVariants.escaped(scalar)
            case "\0"..<" ": bytes += JSONVariants.escaped(scalar)
            case "\u{80}"... where escape == .beyondASCII || escape == .both:
                bytes += JSONVariants.escaped(scalar)
            default: bytes += Array(String(scalar).utf8)
            }
        }
        return bytes + [UInt8(ascii: "\"")]
    }

    /// `\u00e9`, as one UTF-16 unit or two.
    private static func escaped(_ scalar: Unicode.Scalar) -> [UInt8] {
        String(scalar).utf16.flatMap { unit in
            let digits = String(unit, radix: 16)
            return [UInt8]("\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits)
        }
    }
}
