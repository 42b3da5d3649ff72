import Foundation

/// Prints the model's states on standard output: what has changed as text, or each state as one line of JSON.
@MainActor
final class StateReport {
    private let format: CommandOptions.Format
    private var last: NotesState?
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(format: CommandOptions.Format) { self.format = format }

    func show(_ state: NotesState) {
        for line in lines(for: state) { FileHandle.standardOutput.write(Data("\(line.visible)\n".utf8)) }
        last = state
        guard !state.isBusy else { return }
        for continuation in waiting { continuation.resume() }
        waiting = []
    }

    /// Returns when no action is under way, the launch included.
    func waitUntilIdle() async {
        guard last?.isBusy ?? true else { return }
        await withCheckedContinuation { waiting.append($0) }
    }

    private func lines(for state: NotesState) -> [String] {
        guard format == .text else { return [StateLine(state).text] }
        var lines: [String] = []
        if state.screen != last?.screen { lines.append(state.screen.text) }
        if state.notes != last?.notes, !state.notes.isEmpty {
            lines += state.notes.map { "  \($0.id). \($0.text)" }
        }
        if let message = state.message, message != last?.message { lines.append(message) }
        return lines
    }
}

extension NotesState.Screen {
    fileprivate var text: String {
        switch self {
        case .waiting: "waiting"
        case .login(let notice): notice.map { "login: \($0)" } ?? "login"
        case .locked: "locked"
        case .home(let account): "home of \(account)"
        case .updateRequired(let url): "update required: \(url ?? "ask your administrator")"
        }
    }
}

extension String {
    /// With control characters and the like as `\uXXXX`: the text of a note or of a server must not control
    /// the terminal.
    fileprivate var visible: String {
        unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
                "\\u" + String(format: "%04X", scalar.value)
            default: String(scalar)
            }
        }.joined()
    }
}

/// A state in JSON.
private struct StateLine: Encodable {
    let screen: String
    var account: String?
    var notice: String?
    var updateURL: String?
    let notes: [Note]
    let message: String?
    let busy: Bool

    init(_ state: NotesState) {
        (notes, message, busy) = (state.notes, state.message, state.isBusy)
        switch state.screen {
        case .waiting: screen = "waiting"
        case .locked: screen = "locked"
        case .login(let notice): (screen, self.notice) = ("login", notice)
        case .home(let account): (screen, self.account) = ("home", account)
        case .updateRequired(let url): (screen, updateURL) = ("update-required", url)
        }
    }

    var text: String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }
}
