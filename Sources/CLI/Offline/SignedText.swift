import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The string to sign as a client spelled it, beside ours.
struct SignedText {
    enum Comparison {
        case same
        /// An editor's or a print statement's end of line, which may or may not have been signed.
        case sameButForLastNewline
        case different(Difference)
        /// The request cannot be read, so there is no string to compare with.
        case nothing

        var difference: Difference? { if case .different(let difference) = self { difference } else { nil } }
    }

    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func compared(with explanation: Explanation?, _ desk: Desk) -> Comparison {
        guard let spelled = explanation?.spelled else { return .nothing }
        let signed = desk.scheme == .formMD5 ? masked(desk) : bytes
        // The canonical request is where sigv4's differences are; its hash alone tells nothing.
        let isCanonical = desk.scheme == .sigV4 && !bytes.starts(with: Array("AWS4-HMAC-SHA256".utf8))
        let received = isCanonical ? explanation?.canonicalRequest ?? spelled : spelled
        if signed == received { return .same }
        if signed == received + [0x0A] { return .sameButForLastNewline }
        guard var difference = Difference(signed: signed, received: received, scheme: desk.scheme) else { return .same }
        difference.signed = hidden(difference.signed, desk)
        return .different(difference)
    }

    /// With the value of `private_key` as ours is shown: it is a secret, the right one or another.
    private func masked(_ desk: Desk) -> [UInt8] {
        let mark = Array("private_key=".utf8)
        let secret = desk.key.secret.withExposedBytes { span in (0..<span.count).map { span[$0] } }
        if desk.policy.formMD5Key == .appended, bytes.suffix(secret.count).elementsEqual(secret) {
            return bytes.dropLast(secret.count) + Array("<secret>".utf8)
        }
        guard let start = bytes.firstRange(of: mark)?.upperBound else { return bytes }
        let rest = Array(bytes[start...])
        if rest.starts(with: Array("<secret>".utf8)) { return bytes }
        let isOurs = rest.starts(with: secret)
        let after = isOurs ? rest.dropFirst(secret.count) : rest.drop { $0 != UInt8(ascii: "&") }
        return bytes[..<start] + Array((isOurs ? "<secret>" : "<another secret>").utf8) + after
    }

    /// A secret that the client wrote where none belongs.
    private func hidden(_ text: String, _ desk: Desk) -> String {
        let secret = desk.key.secret.withExposedBytes { $0.text }
        return secret.utf8.count < 8 ? text : text.replacing(secret, with: "<secret>")
    }
}
