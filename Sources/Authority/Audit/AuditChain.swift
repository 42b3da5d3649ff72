import CountersignSeal
import CountersignWire

/// The chain of the log's records. Each tag is `HMAC-SHA256(key, 1 ‖ previous tag ‖ record)`, so that no
/// record can be altered, removed or moved without the key. The head, also authenticated, contains the
/// number of records, so that the end cannot be cut off. The key is sealed under the master key: access to
/// the database alone does not allow undetected changes.
///
/// The chain does not detect a whole database, log and head together, that was restored from an earlier
/// copy. For that, note ``AuditHead/text`` elsewhere and let the verification check that the log still
/// contains it.
struct AuditChain: Sendable {
    static let keyCount = 32
    static let tagCount = 32
    /// The previous tag of the first record.
    static let firstTag = [UInt8](repeating: 0, count: tagCount)

    private let hmac: HMACSHA256

    init(key: Secret) { hmac = key.withExposedBytes { HMACSHA256(key: $0) } }

    func tag(of record: [UInt8], behind tag: [UInt8]) -> [UInt8] {
        authenticate(kind: 1, message: tag + record)
    }

    /// `number (8 bytes) ‖ tag ‖ HMAC(key, 2 ‖ number ‖ tag)`.
    func sealed(_ head: AuditHead) -> [UInt8] {
        let content = head.content
        return content + authenticate(kind: 2, message: content)
    }

    /// Nil if it was not made with this key.
    func head(_ sealed: [UInt8]) -> AuditHead? {
        guard sealed.count == 8 + 2 * AuditChain.tagCount else { return nil }
        let head = AuditHead(
            number: Int64(bitPattern: sealed[..<8].reduce(0) { $0 << 8 | UInt64($1) }),
            tag: Array(sealed[8..<8 + AuditChain.tagCount]))
        guard
            isEqual(
                authenticate(kind: 2, message: head.content), to: Array(sealed[(8 + AuditChain.tagCount)...]))
        else { return nil }
        return head
    }

    func isEqual(_ computed: [UInt8], to stored: [UInt8]) -> Bool {
        ConstantTime.equals(computed.span, stored.span) == .equal
    }

    /// The first byte separates the uses: a record's tag never authenticates a head.
    private func authenticate(kind: UInt8, message: [UInt8]) -> [UInt8] {
        let digest = hmac.authenticate(([kind] + message).span)
        return digest.indices.map { digest[$0] }
    }
}

/// The end of the log: the number and tag of its last record.
package struct AuditHead: Sendable, Equatable {
    package var number: Int64
    package var tag: [UInt8]

    package static let empty = AuditHead(number: 0, tag: AuditChain.firstTag)

    fileprivate var content: [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: UInt64(bitPattern: number) >> UInt64(56 - 8 * $0)) } + tag
    }

    /// `NUMBER:TAG`, the tag in hexadecimal, to note elsewhere. It reveals nothing about the key.
    package var text: String { "\(number):\(Hex.encode(tag.span))" }

    package init(number: Int64, tag: [UInt8]) {
        self.number = number
        self.tag = tag
    }

    /// Parses the form that ``text`` writes; nil for anything else.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let number = Int64(parts[0]), number >= 0,
            let tag = Hex.decode(String(parts[1])), tag.count == AuditChain.tagCount
        else { return nil }
        self.init(number: number, tag: tag)
    }
}
