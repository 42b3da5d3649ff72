import CountersignSeal
import CountersignWire

/// The passphrase of a profile's vault: from the environment, or from a person at a terminal, who does not see it.
struct VaultPassphrase {
    let run: Invocation

    static let variable = "COUNTERSIGN_VAULT_PASSPHRASE"

    func read() throws(Fault) -> Secret {
        if let given = try given() { return given }
        return try ask("passphrase of the profile: ")
    }

    /// One that is new: a person types it twice.
    func readNew() throws(Fault) -> Secret {
        if let given = try given() { return given }
        let first = try ask("new passphrase of the profile: ")
        guard first.isSame(as: try ask("the same again: ")) else {
            throw Fault(.failed, "the two are not the same; nothing was changed")
        }
        return first
    }

    private func given() throws(Fault) -> Secret? {
        guard let text = run.environment[VaultPassphrase.variable] else { return nil }
        let bytes = Array(text.utf8)
        return try checked(Secret(copying: bytes.span), VaultPassphrase.variable)
    }

    private func ask(_ prompt: String) throws(Fault) -> Secret {
        guard let text = try run.console.askUnseen(prompt) else {
            throw Fault(
                .usage,
                "the passphrase of the profile is missing: expected \(VaultPassphrase.variable), or a terminal to ask at"
            )
        }
        return try checked(text, "the passphrase")
    }

    private func checked(_ text: Secret, _ place: String) throws(Fault) -> Secret {
        guard text.count > 0 else { throw Fault(.usage, "\(place): is empty") }
        return text
    }
}
