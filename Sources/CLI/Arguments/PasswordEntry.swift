import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire
import Glibc

/// A password from standard input or from a person at a terminal, who does not see it.
struct PasswordEntry {
    let run: Invocation

    static let option = Option.flag("password-stdin", "read the password from standard input")
    /// OPAQUE can write no more.
    private static let longest = 65_535

    /// `asking` is the prompt.
    func read(asking prompt: String) throws(Fault) -> Secret {
        if run.arguments.has("password-stdin") { return try lines(1)[0] }
        return try ask(prompt)
    }

    /// One that is new: a person types it twice.
    func readNew(asking prompt: String) throws(Fault) -> Secret {
        if run.arguments.has("password-stdin") { return try lines(1)[0] }
        return try askTwice(prompt)
    }

    /// The old one and the new one: from standard input, a line each.
    func readChange() throws(Fault) -> (old: Secret, new: Secret) {
        if run.arguments.has("password-stdin") {
            let both = try lines(2)
            return (both[0], both[1])
        }
        return (try ask("password: "), try askTwice("new password: "))
    }

    /// The one-time code, on a line of its own from standard input, and the new password behind it or from a person.
    func readAfterCode() throws(Fault) -> (code: Secret, password: Secret) {
        if run.arguments.has("password-stdin") {
            let both = try lines(2)
            return (both[0], both[1])
        }
        if run.console.isAskable { return (try ask("code: "), try askTwice("new password: ")) }
        throw Fault(.usage, "--reset-code-stdin: expected --password-stdin beside it: the code, and the new password")
    }

    /// As text, which is what can be a password.
    static func text(_ secret: Secret) throws(Fault) -> String {
        let bytes = secret.withExposedBytes { span in span.indices.map { span[$0] } }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Fault(.usage, "the password: expected UTF-8")
        }
        return text
    }

    static func password(_ secret: Secret) throws(Fault) -> Password {
        do throws(Password.Problem) {
            return try Password(typed: secret)
        } catch {
            throw Fault(.usage, error.description)
        }
    }

    /// Without the ends of lines that pipes and files have. A single line may be all there is, with line feeds in it or not.
    private func lines(_ count: Int) throws(Fault) -> [Secret] {
        let bytes = Invocation.trimmed(try run.console.read(limit: 2 * PasswordEntry.longest + 2))
        guard count > 1 else { return [Secret(copying: bytes.span)] }
        let parts = bytes.split(separator: 0x0A, maxSplits: count - 1, omittingEmptySubsequences: false)
        guard parts.count == count else {
            throw Fault(.usage, "standard input: expected \(count) lines: the password, and the new one")
        }
        return parts.map { part in
            let line = Invocation.trimmed(Array(part))
            return Secret(copying: line.span)
        }
    }

    private func askTwice(_ prompt: String) throws(Fault) -> Secret {
        let first = try ask(prompt)
        let second = try ask("the same again: ")
        guard first.isSame(as: second) else { throw Fault(.failed, "the two are not the same; nothing was changed") }
        return first
    }

    private func ask(_ prompt: String) throws(Fault) -> Secret {
        guard let text = try run.console.askUnseen(prompt) else {
            throw Fault(.usage, "the password is missing: expected --password-stdin, or a terminal to ask at")
        }
        return text
    }
}

extension Secret {
    /// Both were typed by the same person a moment ago: how long this takes tells nobody anything.
    func isSame(as other: Secret) -> Bool {
        withExposedBytes { one in
            other.withExposedBytes { two in one.count == two.count && one.indices.allSatisfy { one[$0] == two[$0] } }
        }
    }
}
