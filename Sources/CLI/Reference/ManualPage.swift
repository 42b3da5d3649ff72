import CountersignServer
import CountersignWire

/// A manual page, in the language of man(7), from the tables of commands and settings. Accepted by groff and
/// mandoc without a warning.
struct ManualPage {
    private var lines: [String] = []

    private static let width = 76

    /// The page of one command: `countersign-app-add(1)`.
    init(of command: Command) {
        begin("countersign-\(command.words.joined(separator: "-"))", summary: command.summary)
        synopsis(of: command)
        section("DESCRIPTION")
        if command.notes.isEmpty {
            paragraph("Use this command to \(command.summary).")
        } else {
            for part in ManualPage.paragraphs(of: command.notes) { paragraph(part) }
        }
        section("OPTIONS")
        for option in command.allOptions { item(option) }
        if command.words == Command.serve.words { environment() }
        exitStatus()
        section("SEE ALSO")
        lines.append(".BR countersign (1)")
    }

    /// countersign(1), which lists the commands.
    init(of commands: [Command]) {
        begin(
            "countersign", summary: "requests come from a live version of an app, unread, unchanged and once")
        section("SYNOPSIS")
        lines += [".B countersign", ".I COMMAND", "[options]"]
        section("DESCRIPTION")
        paragraph(
            "Countersign proves that each request comes from a live version of your app, unread, unchanged "
                + "and once. `countersign COMMAND --help`, and countersign-COMMAND(1), describe a command.")
        section("COMMANDS")
        for command in commands {
            lines += [".TP", ".B \(ManualPage.escaped(command.name))"]
            fill(command.summary)
        }
        exitStatus()
        section("SEE ALSO")
        lines.append(".BR countersign\\-serve (1)")
    }

    var text: String { lines.joined(separator: "\n") }

    private mutating func begin(_ name: String, summary: String) {
        let title = ManualPage.escaped(name.uppercased())
        lines.append(".TH \(title) 1 \(Product.date) \"countersign \(Product.version)\" \"Countersign\"")
        // Long options and addresses do not let lines be adjusted to both margins.
        lines.append(".ad l")
        section("NAME")
        fill("\(name) - \(summary)")
    }

    private mutating func synopsis(of command: Command) {
        section("SYNOPSIS")
        lines.append(".B countersign \(ManualPage.escaped(command.name))")
        let rest = Help.usage(of: command).dropFirst("countersign \(command.name)".count)
        let shown = rest.drop { $0 == " " }
        if !shown.isEmpty { fill(String(shown)) }
    }

    private mutating func environment() {
        section("ENVIRONMENT")
        for setting in Setting.all {
            lines += [".TP", ".B \(ManualPage.escaped(setting.variable))"]
            fill("used where \(setting.flag) is not given")
        }
    }

    private mutating func exitStatus() {
        section("EXIT STATUS")
        for status in ExitStatus.allCases {
            lines += [".TP", ".B \(status.rawValue)", status.meaning]
        }
    }

    private mutating func item(_ option: Option) {
        var names = "\\fB\\-\\-\(ManualPage.escaped(option.name))\\fR"
        if let letter = option.letter { names = "\\fB\\-\(letter)\\fR, \(names)" }
        switch option.kind {
        case .flag: break
        case .value(let placeholder), .list(let placeholder):
            names += " \\fI\(ManualPage.escaped(placeholder))\\fR"
        }
        lines += [".TP", names]
        fill(option.meaning)
        guard let setting = Setting.all.first(where: { $0.name == option.name }), option.form != nil else {
            return
        }
        lines.append(".br")
        fill(setting.facts)
    }

    private mutating func section(_ name: String) { lines.append(".SH \(name)") }

    private mutating func paragraph(_ text: String) {
        // A section's first paragraph begins without a request.
        if lines.last?.hasPrefix(".SH") == false { lines.append(".PP") }
        fill(text)
    }

    /// Words in lines of a readable width.
    private mutating func fill(_ text: String) {
        var line = ""
        for word in text.split(whereSeparator: \.isWhitespace) {
            let piece = ManualPage.escaped(String(word))
            if !line.isEmpty, line.utf8.count + piece.utf8.count + 1 > ManualPage.width {
                lines.append(line)
                line = ""
            }
            line += line.isEmpty ? ManualPage.guarded(piece) : " \(piece)"
        }
        if !line.isEmpty { lines.append(line) }
    }

    /// A line that begins with one of these would be a request.
    private static func guarded(_ text: String) -> String {
        text.hasPrefix(".") || text.hasPrefix("'") ? "\\&\(text)" : text
    }

    private static func paragraphs(of notes: String) -> [String] {
        var parts: [[Substring]] = [[]]
        for line in notes.split(separator: "\n", omittingEmptySubsequences: false) {
            let isIndented = line.hasPrefix(" ")
            if line.allSatisfy(\.isWhitespace) || isIndented { parts.append([]) }
            parts[parts.count - 1].append(line)
        }
        return parts.map { $0.joined(separator: " ") }.filter { !$0.allSatisfy(\.isWhitespace) }
    }

    /// Text as roff shows it. Source: groff_char(7).
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "`": result += "\\(ga"
            case "'": result += "\\(aq"
            case "^": result += "\\(ha"
            case "~": result += "\\(ti"
            case "\"": result += "\\(dq"
            case _ where scalar.isASCII: result.unicodeScalars.append(scalar)
            default:
                let digits = String(scalar.value, radix: 16, uppercase: true)
                result += "\\[u\(String(repeating: "0", count: max(0, 4 - digits.count)))\(digits)]"
            }
        }
        return result
    }
}

extension Setting {
    /// `default: 75; unit: seconds; applied by a reload`.
    var facts: String {
        var parts: [String] = []
        if !fallback.isEmpty { parts.append("default: \(fallback)") }
        if !unit.isEmpty { parts.append("unit: \(unit)") }
        parts.append("applied by \(effectText)")
        return parts.joined(separator: "; ")
    }
}
