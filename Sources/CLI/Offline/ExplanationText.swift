import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// An explanation for people. Parts of the request are shown as ``VisibleText``, because the sender may have
/// put terminal control sequences in them.
package struct ExplanationText {
    /// Colour on a terminal, none in a file.
    package enum Style { case plain, coloured }

    var style: Style

    func text(
        verdict: Explanation.Verdict, explanation: Explanation?, comparison: ClientStringToSign.Comparison?
    )
        -> String
    {
        var parts = (explanation?.stages ?? []).filter { $0.name != "verdict" }.map {
            part($0.name, text: $0.text)
        }
        switch verdict {
        case .accepted: parts.append(paint("accepted", in: .good))
        case .refused(let refusal):
            parts.append(
                paint("refused: \(refusal.code.name)", in: .bad) + "\n" + indented(refusal.code.title)
                    + (refusal.detail.isEmpty ? "" : "\n" + indented(refusal.detail)))
            if explanation?.cause != nil || refusal.code == .badSignature {
                parts.append(cause(explanation?.cause))
            }
        }
        if let comparison {
            parts.append(part("the string that the client signed", text: compared(comparison)))
        }
        let notes = explanation?.notes ?? []
        if !notes.isEmpty { parts.append(part("notes", text: notes.joined(separator: "\n"))) }
        return parts.joined(separator: "\n\n")
    }

    private func cause(_ cause: Cause?) -> String {
        guard let cause else {
            return part(
                "cause",
                text:
                    "none that is known: most likely another secret, or a part that was "
                    + "changed after signing.\n"
                    + "--other-secret tries more secrets, --signed compares with what the client signed.")
        }
        var text = part("cause: \(cause.code)", text: "\(cause.sentence)\nto mend it: \(cause.remedy)")
        if let difference = cause.difference { text += "\n" + indented(describe(difference)) }
        return text
    }

    private func compared(_ comparison: ClientStringToSign.Comparison) -> String {
        switch comparison {
        case .same:
            "is the one above, byte for byte: if the signature does not hold, the secret or "
                + "the algorithm differs"
        case .sameButForLastNewline: "is the one above and an end of line; was that signed too?"
        case .different(let difference): describe(difference)
        case .nothing: "cannot be compared: the request has none"
        }
    }

    private func describe(_ difference: Difference) -> String {
        """
        differs at line \(difference.line), byte \(difference.byte): \(difference.component)
          signed    \(difference.signed)
          received  \(difference.received)
        """
    }

    private func part(_ name: String, text: String) -> String {
        "\(paint(name, in: .heading))\n\(indented(text))"
    }

    private func indented(_ text: String) -> String {
        VisibleText.of(text).split(separator: "\n", omittingEmptySubsequences: false).map { "  \($0)" }
            .joined(separator: "\n")
    }

    private enum Colour: String {
        case heading = "1"
        case good = "32"
        case bad = "31"
    }

    private func paint(_ text: String, in colour: Colour) -> String {
        let text = VisibleText.of(text)
        return style == .plain ? text : "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m"
    }
}

extension Invocation {
    /// Source: no-color.org, any value that is not empty.
    package var style: ExplanationText.Style {
        console.isTerminal && (environment["NO_COLOR"] ?? "").isEmpty ? .coloured : .plain
    }
}

/// The string to sign as a client spelled it, beside ours.
struct ClientStringToSign {
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

    func compare(with explanation: Explanation?, context: OfflineContext) -> Comparison {
        guard let spelled = explanation?.stringToSign else { return .nothing }
        let signed = context.scheme == .formMD5 ? masked(context) : bytes
        // The canonical request is where sigv4's differences are; its hash alone tells nothing.
        let isCanonical = context.scheme == .sigV4 && !bytes.starts(with: Array("AWS4-HMAC-SHA256".utf8))
        let received = isCanonical ? explanation?.canonicalRequest ?? spelled : spelled
        if signed == received { return .same }
        if signed == received + [0x0A] { return .sameButForLastNewline }
        guard var difference = Difference(signed: signed, received: received, scheme: context.scheme) else {
            return .same
        }
        difference.signed = redacted(difference.signed, context: context)
        return .different(difference)
    }

    /// With the value of `private_key` as ours is shown: it is a secret, the right one or another.
    private func masked(_ context: OfflineContext) -> [UInt8] {
        let mark = Array("private_key=".utf8)
        let secret = context.key.secret.withExposedBytes { span in (0..<span.count).map { span[$0] } }
        if context.policy.formMD5Key == .appended, bytes.suffix(secret.count).elementsEqual(secret) {
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
    private func redacted(_ text: String, context: OfflineContext) -> String {
        let secret = context.key.secret.withExposedBytes { $0.text }
        return secret.utf8.count < 8 ? text : text.replacing(secret, with: "<secret>")
    }
}
