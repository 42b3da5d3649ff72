import CountersignSeal
import CountersignWire

/// The chain of the log's records: each tag is `HMAC-SHA256(key, 1 ‖ tag before ‖ record)`, so that none can be altered,
/// removed or moved without the key; and the head, authenticated too, says how many there are, so that the end cannot be
/// cut off. The key is sealed under the master key: who has the database alone can do none of it unseen.
///
/// What it cannot show is a whole database put back from an earlier copy, log and head alike: for that,
/// ``AuditHead/text`` is noted elsewhere, and the verification asked whether the log still has it.
struct AuditChain: Sendable {
    static let keyCount = 32
    static let tagCount = 32
    /// Stands for the tag before the first record.
    static let firstTag = [UInt8](repeating: 0, count: tagCount)

    private let hmac: HMACSHA256

    init(key: Secret) { hmac = key.withExposedBytes { HMACSHA256(key: $0) } }

    func tag(of record: [UInt8], behind tag: [UInt8]) -> [UInt8] { authenticate(1, tag + record) }

    /// `number (8 bytes) ‖ tag ‖ HMAC(key, 2 ‖ number ‖ tag)`.
    func sealed(_ head: AuditHead) -> [UInt8] {
        let content = head.content
        return content + authenticate(2, content)
    }

    /// Nil where it was not made with this key.
    func head(_ sealed: [UInt8]) -> AuditHead? {
        guard sealed.count == 8 + 2 * AuditChain.tagCount else { return nil }
        let head = AuditHead(
            number: Int64(bitPattern: sealed[..<8].reduce(0) { $0 << 8 | UInt64($1) }),
            tag: Array(sealed[8..<8 + AuditChain.tagCount]))
        guard holds(authenticate(2, head.content), Array(sealed[(8 + AuditChain.tagCount)...])) else { return nil }
        return head
    }

    func holds(_ computed: [UInt8], _ stored: [UInt8]) -> Bool {
        ConstantTime.equals(computed.span, stored.span) == .equal
    }

    /// The first byte keeps records and heads apart: no record's tag is ever a head's.
    private func authenticate(_ kind: UInt8, _ message: [UInt8]) -> [UInt8] {
        let digest = hmac.authenticate(([kind] + message).span)
        return digest.indices.map { digest[$0] }
    }
}

/// Where the log ends: the number and tag of its last record.
package struct AuditHead: Sendable, Equatable {
    package var number: Int64
    package var tag: [UInt8]

    static let empty = AuditHead(number: 0, tag: AuditChain.firstTag)

    fileprivate var content: [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: UInt64(bitPattern: number) >> UInt64(56 - 8 * $0)) } + tag
    }

    /// `NUMBER:TAG`, the tag in hexadecimal: to be noted elsewhere. It tells nothing about the key.
    package var text: String { "\(number):\(Hex.encode(tag.span))" }

    package init(number: Int64, tag: [UInt8]) {
        self.number = number
        self.tag = tag
    }

    /// Nil where it is not what ``text`` writes.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let number = Int64(parts[0]), number >= 0,
            let tag = Hex.decode(String(parts[1])), tag.count == AuditChain.tagCount
        else { return nil }
        self.init(number: number, tag: tag)
    }
}
