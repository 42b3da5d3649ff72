import CountersignGate
import CountersignWire

extension Command {
    static let verify = Command(
        words: ["verify"], summary: "judge a signed request offline", options: Desk.options + Desk.judgingOptions,
        notes: Desk.notes + """


            Prints `accepted`, or the code of the refusal (status 1): what a gateway with this policy says.
            Which hosts it answers for and what it has seen before are not looked for: that takes a
            deployment.
            """
    ) { (run) throws(Fault) in
        let desk = try Desk(run)
        let explanation = try desk.explanation()
        let verdict = desk.verdict(explanation)
        try run.print(.object(Desk.json(verdict))) {
            switch verdict {
            case .accepted: "accepted"
            case .refused(let refusal): refusal.code.name
            }
        }
        guard case .refused(let refusal) = verdict else { return .success }
        if !run.arguments.has("json"), !refusal.detail.isEmpty { run.console.note(refusal.detail) }
        return .failed
    }
}
