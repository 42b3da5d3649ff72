import CountersignSeal
import CountersignWire

/// How a sealed file begins: `CSV1 ‖ guard (1) ‖ length (2) ‖ guarded key`, big-endian; what follows is sealed with that key. Bound
/// to what is sealed, so that neither is put to another.
struct SealedHead: Equatable {
    private static let magic = Array("CSV1".utf8)
    private static let fixed = 7

    let kind: KeyGuardKind
    let guarded: [UInt8]

    init(_ kind: KeyGuardKind, guarded: [UInt8]) throws(VaultProblem) {
        guard guarded.count <= 0xFFFF else { throw .failed("\(kind.name): a guarded key of \(guarded.count) bytes") }
        self.kind = kind
        self.guarded = guarded
    }

    /// The head of a file and what it seals.
    static func read(_ bytes: [UInt8]) throws(VaultProblem) -> (head: SealedHead, sealed: [UInt8]) {
        guard bytes.count >= fixed, bytes.starts(with: magic), let kind = KeyGuardKind(rawValue: bytes[4]) else {
            throw .failed("not a vault of this program")
        }
        let end = fixed + (Int(bytes[5]) << 8 | Int(bytes[6]))
        guard bytes.count > end else { throw .failed("cut off") }
        return (try SealedHead(kind, guarded: Array(bytes[fixed..<end])), Array(bytes[end...]))
    }

    var bytes: [UInt8] {
        SealedHead.magic + [kind.rawValue, UInt8(guarded.count >> 8), UInt8(guarded.count & 0xFF)] + guarded
    }

    var binding: SealBinding { SealBinding(kind: "vault-items", row: Hex.encode(bytes.span)) }
}
