import CountersignSeal
import CountersignWire

/// A password as careful servers keep it, found in a stolen row: Argon2id with its cost and salt beside it.
struct SlowHash: Sendable {
    /// So many words a machine, where the list is divided among many.
    static let share = 20

    /// As it stands in the row: ``PasswordHash/encoded`` in hexadecimal.
    let text: String
    private let hash: PasswordHash

    /// Nil where it is none.
    init?(_ text: String) {
        guard let bytes = Hex.decode(text), let hash = PasswordHash(encoded: Secret(copying: bytes.span)) else {
            return nil
        }
        self.text = text
        self.hash = hash
    }

    func matches(_ word: String) -> Bool {
        guard let verdict = try? hash.matches(Secret(copying: Array(word.utf8).span)) else { return false }
        return verdict == .equal
    }
}
