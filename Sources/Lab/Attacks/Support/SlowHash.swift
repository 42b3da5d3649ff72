import CountersignSeal
import CountersignWire

/// A password as careful servers keep it: Argon2id with its parameters and salt, in PHC's format. Source: RFC 9106; the PHC string format.
struct SlowHash: Sendable {
    /// So many words a machine, where the list is divided among many.
    static let share = 20

    /// `$argon2id$v=19$m=…,t=…,p=1$SALT$HASH`, as it stands in the row.
    let text: String
    private let function: Argon2id
    private let hash: [UInt8]

    /// Nil where it is none.
    init?(_ text: String) {
        let parts = text.split(separator: "$", omittingEmptySubsequences: false)
        guard parts.count == 6, parts[0].isEmpty, parts[1] == "argon2id", parts[2] == "v=19",
            let costs = SlowHash.costs(parts[3]), let salt = SlowHash.bytes(parts[4]),
            let hash = SlowHash.bytes(parts[5]),
            let function = Argon2id(memory: costs.memory, passes: costs.passes, lanes: costs.lanes, salt: salt)
        else { return nil }
        self.text = text
        self.function = function
        self.hash = hash
    }

    func matches(_ word: String) -> Bool {
        let computed = try? function.hash(Secret(copying: Array(word.utf8).span), count: hash.count)
        return computed?.bytesForThieves == hash
    }

    private static func costs(_ text: Substring) -> (memory: Int, passes: Int, lanes: Int)? {
        let numbers = text.split(separator: ",").compactMap { part in
            part.split(separator: "=").last.flatMap { Int($0) }
        }
        return numbers.count == 3 ? (numbers[0], numbers[1], numbers[2]) : nil
    }

    /// Base64 without padding.
    private static func bytes(_ text: Substring) -> [UInt8]? {
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        return Base64.decode(text + padding, .standard)
    }
}
