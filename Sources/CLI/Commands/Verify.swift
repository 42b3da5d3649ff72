import CountersignGate
import CountersignWire

extension Command {
    static let verify = Command(
        words: ["verify"], summary: "judge a signed request offline", options: Desk.options,
        notes: Desk.notes + """


            Prints `accepted`, or the code of the refusal (status 1). Replays are not looked for: that takes a memory.
            """
    ) { (run) throws(Fault) in
        let desk = try Desk(run)
        let explanation = desk.explanation()
        let verdict = desk.verdict(explanation)
        try run.print(.object(Desk.json(verdict))) {
            switch verdict {
            case .accepted: "accepted"
            case .refused(let refusal): refusal.code.name
            }
        }
        guard case .refused(let refusal) = verdict else {
            for note in explanation?.notes ?? [] { run.console.note("a gateway would refuse it: \(note)") }
            return .success
        }
        if !run.arguments.has("json"), !refusal.detail.isEmpty { run.console.note(refusal.detail) }
        return .failed
    }
}
