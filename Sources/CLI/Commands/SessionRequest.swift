import CountersignClient
import CountersignWire

/// A call in the name of who is signed in.
struct SessionRequest: Sendable {
    let run: Invocation
    let desk: ClientDesk
    let shown: ShownAnswer

    func send(_ draft: Draft) throws(Fault) -> ExitStatus {
        if run.arguments.has("dry-run") {
            let signed = try desk.perform { (installation, surroundings) throws(ClientProblem) in
                try SignedCalls(installation, surroundings).signed(draft)
            }
            return try Command.show(signed, run)
        }
        // Only the call's own answers are shown, and not those of a refresh on the way.
        let quiet = ServerTransport(line: try ServerLine(desk.profile, .within(ServerTransport.patience)))
        let answered = try desk.perform { (installation, surroundings) throws(ClientProblem) in
            try await SignedCalls(installation, surroundings, refreshingOver: quiet).send(draft)
        }
        guard let last = shown.last else { throw Fault(.failed, "no answer was taken") }
        try last.finish()
        UpdateHint.show(answered.response, run)
        if let signer = answered.signer {
            run.console.note("the answer's signature holds (key \(signer))")
        } else if !answered.response.message.isBodyWhole {
            run.console.note("note: the answer is too long for its signature to be looked at")
        }
        return last.status >= 400 ? .failed : .success
    }
}
