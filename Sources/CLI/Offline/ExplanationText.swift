import CountersignGate
import CountersignWire

/// An explanation for people. What the request holds is shown as ``VisibleText``: whoever sent it may have meant it for a terminal.
struct ExplanationText {
    /// Colour on a terminal, none in a file.
    enum Style { case plain, coloured }

    var style: Style

    func text(_ verdict: Explanation.Verdict, _ explanation: Explanation?, _ comparison: SignedText.Comparison?)
        -> String
    {
        var parts = (explanation?.stages ?? []).filter { $0.name != "verdict" }.map { part($0.name, $0.text) }
        switch verdict {
        case .accepted: parts.append(paint("accepted", .good))
        case .refused(let refusal):
            parts.append(
                paint("refused: \(refusal.code.name)", .bad) + "\n" + indented(refusal.code.title)
                    + (refusal.detail.isEmpty ? "" : "\n" + indented(refusal.detail)))
            if explanation?.cause != nil || refusal.code == .badSignature { parts.append(cause(explanation?.cause)) }
        }
        if let comparison { parts.append(part("the string that the client signed", compared(comparison))) }
        let notes = explanation?.notes ?? []
        if !notes.isEmpty { parts.append(part("notes", notes.joined(separator: "\n"))) }
        return parts.joined(separator: "\n\n")
    }

    private func cause(_ cause: Cause?) -> String {
        guard let cause else {
            return part(
                "cause",
                "none that is known: most likely another secret, or a part that was changed after signing.\n"
                    + "--other-secret tries more secrets, --signed compares with what the client signed.")
        }
        var text = part("cause: \(cause.code)", "\(cause.sentence)\nto mend it: \(cause.remedy)")
        if let difference = cause.difference { text += "\n" + indented(describe(difference)) }
        return text
    }

    private func compared(_ comparison: SignedText.Comparison) -> String {
        switch comparison {
        case .same:
            "is the one above, byte for byte: if the signature does not hold, the secret or the algorithm differs"
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

    private func part(_ name: String, _ text: String) -> String { "\(paint(name, .heading))\n\(indented(text))" }

    private func indented(_ text: String) -> String {
        VisibleText.of(text).split(separator: "\n", omittingEmptySubsequences: false).map { "  \($0)" }
            .joined(separator: "\n")
    }

    private enum Colour: String {
        case heading = "1"
        case good = "32"
        case bad = "31"
    }

    private func paint(_ text: String, _ colour: Colour) -> String {
        let text = VisibleText.of(text)
        return style == .plain ? text : "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m"
    }
}

extension Invocation {
    /// Source: no-color.org, any value that is not empty.
    var style: ExplanationText.Style {
        console.isTerminal && (environment["NO_COLOR"] ?? "").isEmpty ? .coloured : .plain
    }
}
