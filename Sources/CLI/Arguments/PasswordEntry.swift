import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire
import Glibc

/// A password from standard input, or typed by a person at a terminal without echo.
struct PasswordEntry {
    let run: Invocation

    static let option = Option.flag("password-stdin", meaning: "read the password from standard input")
    /// OPAQUE can write no more.
    private static let longest = 65_535

    /// `asking` is the prompt.
    func read(asking prompt: String) throws(OperationalError) -> Secret {
        if run.arguments.has("password-stdin") { return try lines(1)[0] }
        return try ask(prompt)
    }

    /// One that is new: a person types it twice.
    func readNew(asking prompt: String) throws(OperationalError) -> Secret {
        if run.arguments.has("password-stdin") { return try lines(1)[0] }
        return try askTwice(prompt)
    }

    /// The old one and the new one: from standard input, a line each.
    func readChange() throws(OperationalError) -> (old: Secret, new: Secret) {
        if run.arguments.has("password-stdin") {
            let both = try lines(2)
            return (both[0], both[1])
        }
        return (try ask("password: "), try askTwice("new password: "))
    }

    /// The one-time code, on a line of its own from standard input, and the new password behind it or from a
    /// person.
    func readAfterCode() throws(OperationalError) -> (code: Secret, password: Secret) {
        if run.arguments.has("password-stdin") {
            let both = try lines(2)
            return (both[0], both[1])
        }
        if run.console.isInteractive { return (try ask("code: "), try askTwice("new password: ")) }
        throw OperationalError(
            .usage,
            message: "--reset-code-stdin: expected --password-stdin beside it: the code, and the new password"
        )
    }

    /// As text, which is what can be a password.
    static func text(_ secret: Secret) throws(OperationalError) -> String {
        let bytes = secret.withExposedBytes { span in span.indices.map { span[$0] } }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw OperationalError(.usage, message: "the password: expected UTF-8")
        }
        return text
    }

    static func password(_ secret: Secret) throws(OperationalError) -> Password {
        do {
            return try Password(typed: secret)
        } catch {
            throw OperationalError(.usage, message: error.description)
        }
    }

    /// Without the ends of lines that pipes and files have. A single line may be all there is, with line
    /// feeds in it or not.
    private func lines(_ count: Int) throws(OperationalError) -> [Secret] {
        let bytes = Invocation.trimmed(try run.console.read(limit: 2 * PasswordEntry.longest + 2))
        guard count > 1 else { return [Secret(copying: bytes.span)] }
        let parts = bytes.split(separator: 0x0A, maxSplits: count - 1, omittingEmptySubsequences: false)
        guard parts.count == count else {
            throw OperationalError(
                .usage, message: "standard input: expected \(count) lines: the password, and the new one")
        }
        return parts.map { part in
            let line = Invocation.trimmed(Array(part))
            return Secret(copying: line.span)
        }
    }

    private func askTwice(_ prompt: String) throws(OperationalError) -> Secret {
        let first = try ask(prompt)
        let second = try ask("the same again: ")
        guard first.isSame(as: second) else {
            throw OperationalError(.failed, message: "the two are not the same; nothing was changed")
        }
        return first
    }

    private func ask(_ prompt: String) throws(OperationalError) -> Secret {
        guard let text = try run.console.askHidden(prompt) else {
            throw OperationalError(
                .usage, message: "the password is missing: expected --password-stdin, or a terminal to ask at"
            )
        }
        return text
    }
}

extension Secret {
    /// The same person has just typed both, so the duration of the comparison reveals nothing.
    func isSame(as other: Secret) -> Bool {
        withExposedBytes { one in
            other.withExposedBytes { two in
                one.count == two.count && one.indices.allSatisfy { one[$0] == two[$0] }
            }
        }
    }
}

/// The passphrase of a profile's vault: from the environment, or typed by a person at a terminal without
/// echo.
struct VaultPassphrase {
    let run: Invocation

    static let variable = "COUNTERSIGN_VAULT_PASSPHRASE"

    func read() throws(OperationalError) -> Secret {
        if let given = try given() { return given }
        return try ask("passphrase of the profile: ")
    }

    /// One that is new: a person types it twice.
    func readNew() throws(OperationalError) -> Secret {
        if let given = try given() { return given }
        let first = try ask("new passphrase of the profile: ")
        guard first.isSame(as: try ask("the same again: ")) else {
            throw OperationalError(.failed, message: "the two are not the same; nothing was changed")
        }
        return first
    }

    private func given() throws(OperationalError) -> Secret? {
        guard let text = run.environment[VaultPassphrase.variable] else { return nil }
        let bytes = Array(text.utf8)
        return try checked(Secret(copying: bytes.span), from: VaultPassphrase.variable)
    }

    private func ask(_ prompt: String) throws(OperationalError) -> Secret {
        guard let text = try run.console.askHidden(prompt) else {
            throw OperationalError(
                .usage,
                message:
                    "the passphrase of the profile is missing: expected \(VaultPassphrase.variable), or a "
                    + "terminal to ask at"
            )
        }
        return try checked(text, from: "the passphrase")
    }

    private func checked(_ text: Secret, from place: String) throws(OperationalError) -> Secret {
        guard text.count > 0 else { throw OperationalError(.usage, message: "\(place): is empty") }
        return text
    }
}
