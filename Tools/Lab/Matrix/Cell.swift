// The names and marks of a cell are those of the record that a data folder keeps.
@_exported import struct CountersignAuthority.LabRecord

package typealias AttackName = LabRecord.AttackName
package typealias RowName = LabRecord.RowName
package typealias Column = LabRecord.Column
package typealias Mark = LabRecord.Mark

/// One attack carried out on one row, with the steps that led to its verdict.
package struct Cell: Sendable {
    package var verdict: AttackVerdict
    /// One sentence: what the attacker gained, or what stopped the attack; for `–`, why there is nothing to
    /// attack.
    package var how: String
    /// The recorded steps in order. Empty for `–`.
    package var steps: [AttackStep]

    package init(_ verdict: AttackVerdict, how: String, steps: [AttackStep] = []) {
        self.verdict = verdict
        self.how = how
        self.steps = steps
    }
}

/// One recorded action on the stage.
package struct AttackStep: Sendable {
    /// The component that acted.
    package enum Actor: String, Sendable { case victim, attacker, server }

    package var actor: Actor
    /// A sentence without the actor: "sends a login".
    package var action: String
    /// The bytes as text, a few kilobytes at most; nil where there is nothing to show.
    package var shown: String?

    package init(_ actor: Actor, action did: String, showing shown: String? = nil) {
        self.actor = actor
        self.action = did
        self.shown = shown
    }
}

/// The result of one attack on one row.
package enum AttackVerdict: String, Sendable, CaseIterable {
    /// The attack was carried out, and failed.
    case held = "H"
    /// The attack was carried out, and succeeded.
    case fell = "F"
    /// There is nothing to attack, for example no password or no TLS.
    case notApplicable = "–"
}
