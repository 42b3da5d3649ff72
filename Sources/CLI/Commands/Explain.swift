import CountersignGate
import CountersignWire

extension Command {
    static let explain = Command(
        words: ["explain"], summary: "show how a request is judged, step by step", options: Desk.options,
        notes: Desk.notes + """

            Prints each stage, and where the signature does not hold, which part differs and which usual mistake would
            explain it. The secret and the expected signature are never printed.
            """
    ) { (run) throws(Fault) in
        let desk = try Desk(run)
        let explanation = desk.explanation()
        let verdict = desk.verdict(explanation)
        let stages = (explanation?.stages ?? []).map { stage -> JSONValue in
            ["name": .string(stage.name), "text": .string(stage.text)]
        }
        let json =
            Desk.json(verdict) + [
                ("stages", .array(stages)), ("cause", .optional(explanation?.cause)),
                ("notes", .strings(explanation?.notes ?? [])),
            ]
        try run.print(.object(json)) { text(verdict, explanation) }
        return verdict == .accepted ? .success : .failed
    }

    private static func text(_ verdict: Explanation.Verdict, _ explanation: Explanation?) -> String {
        var parts = (explanation?.stages ?? []).map { "\($0.name)\n\(indented($0.text))" }
        switch verdict {
        case .accepted: parts.append("accepted")
        case .refused(let refusal):
            parts.append("refused: \(refusal.code.name)\n\(indented(refusal.code.title))\n\(indented(refusal.detail))")
        }
        if let cause = explanation?.cause { parts.append("likely cause\n\(indented(cause))") }
        let notes = explanation?.notes ?? []
        if !notes.isEmpty { parts.append("notes\n\(notes.map(indented).joined(separator: "\n"))") }
        return parts.joined(separator: "\n\n")
    }

    private static func indented(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { "  \($0)" }.joined(separator: "\n")
    }
}
