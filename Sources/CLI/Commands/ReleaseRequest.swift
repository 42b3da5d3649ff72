import CountersignClient
import CountersignWire

/// A call in the name of the app version alone.
struct ReleaseRequest: Sendable {
    let run: Invocation
    let desk: ClientDesk
    let shown: ShownAnswer

    func send(_ draft: Draft) throws(Fault) -> ExitStatus {
        let before = try desk.state().clockOffset
        let answered = try desk.perform { (installation, surroundings) throws(ClientProblem) in
            try await ReleaseCalls(installation, surroundings).send(draft)
        }
        guard let last = shown.last else { throw Fault(.failed, "no answer was taken") }
        try last.finish()
        UpdateHint.show(answered.response, run)
        let offset = try desk.state().clockOffset
        if offset != before {
            run.console.note(
                "note: this machine's clock is \(offset) s behind the server's; calls are signed with that added")
        }
        if let signer = answered.signer {
            run.console.note("the answer's signature holds (key \(signer))")
        } else if !answered.response.message.isBodyWhole {
            run.console.note("note: the answer is too long for its signature to be looked at")
        } else if answered.response.message.names.contains(.signatureInput), desk.profile.authorityKey == nil {
            run.console.note("note: the answer is signed, and the profile has no --authority-key to verify it with")
        }
        return last.status >= 400 ? .failed : .success
    }
}
