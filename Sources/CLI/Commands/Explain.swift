import CountersignGate
import CountersignWire

extension Command {
    static let explain = Command(
        words: ["explain"], summary: "show how a request is judged, step by step, and why it is refused",
        options: Desk.options + Desk.judgingOptions + [
            .list("other-secret", "S", "a secret that may have been used by mistake (seen in the process list)"),
            .list("other-secret-file", "F", "a file that holds one"),
            .value("signed", "FILE", "the string to sign as the client spelled it, to compare with"),
        ],
        notes: Desk.notes + """


            Prints each stage, what the scheme leaves unsigned, and where the signature does not hold, which part differs
            and which usual mistake would explain it; docs/explain.md lists them. The secret and the expected signature are never printed.
            """
    ) { (run) throws(Fault) in
        let desk = try Desk(run)
        let explanation = try desk.explanation()
        let verdict = desk.verdict(explanation)
        let comparison = try run.arguments.value("signed").map { (path) throws(Fault) in
            SignedText(try Console.readFile(path, limit: 16 << 20)).compared(with: explanation, desk)
        }
        let json =
            Desk.json(verdict) + [
                ("stages", explanation?.stagesJSON() ?? []), ("cause", explanation?.cause?.json ?? .null),
                ("differs", (comparison?.difference ?? explanation?.cause?.difference)?.json ?? .null),
                ("notes", .strings(explanation?.notes ?? [])),
            ]
        if run.arguments.has("json") {
            try run.console.print(JSONValue.object(json).prettyText)
        } else {
            let text = ExplanationText(style: run.style).text(verdict, explanation, comparison)
            try run.console.print(painted: text)
        }
        return verdict == .accepted ? .success : .failed
    }
}
