/// One executed attack on one scheme, and the way to its verdict.
package struct Cell: Sendable {
    package var verdict: Verdict
    /// One sentence: what the attacker achieved, or what stopped him; for `–` why there is nothing to attack.
    package var how: String
    /// What was done, in order. Empty for `–`.
    package var steps: [Step]

    package init(_ verdict: Verdict, how: String, steps: [Step] = []) {
        self.verdict = verdict
        self.how = how
        self.steps = steps
    }
}

/// One thing that happened on the stage, as a person would tell it.
package struct Step: Sendable {
    /// Who did it.
    package enum Actor: String, Sendable { case victim, attacker, server }

    package var actor: Actor
    /// A sentence without the actor: "sends a login".
    package var did: String
    /// What passed, as text; nil where nothing is worth showing. A few kilobytes at most.
    package var shown: String?

    package init(_ actor: Actor, _ did: String, showing shown: String? = nil) {
        self.actor = actor
        self.did = did
        self.shown = shown
    }
}
