import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Checks a body against what was signed while it streams by. The last bytes must be held back until ``finish()``.
package struct BodyDigest: ~Copyable, Sendable {
    private let expectation: BodyExpectation
    private var sha256 = SHA256()
    private var sha512 = SHA512()

    package init(_ expectation: BodyExpectation) { self.expectation = expectation }

    package mutating func update(_ bytes: Span<UInt8>) throws(Refusal) {
        guard case .digests(let short, let long) = expectation else { return }
        if short != nil { sha256.update(bytes) }
        if long != nil { sha512.update(bytes) }
    }

    /// Throws `body-mismatch` where the body was another than the signed one.
    package consuming func finish() throws(Refusal) {
        fatalError("follows in the next commit")
    }
}

extension BodyExpectation {
    /// Checks a body that is held whole.
    func check(_ body: Span<UInt8>) throws(Refusal) {
        fatalError("follows in the next commit")
    }
}
