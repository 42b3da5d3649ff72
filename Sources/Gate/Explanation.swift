import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A verdict reached offline, with everything that led to it, for a person who wonders why. It shows the string to
/// sign; never a secret, never an expected MAC.
package struct Explanation: Sendable {
    /// One step, in the order the gate takes them: `components`, `string to sign`, `digest`.
    package struct Stage: Sendable, Equatable {
        package var name: String
        package var text: String
    }

    package enum Verdict: Sendable, Equatable {
        case accepted
        case refused(Refusal)
    }

    package var stages: [Stage] = []
    package var verdict = Verdict.accepted
    /// The usual mistake that explains the refusal; nil where none does.
    package var cause: String?
    /// What the gate would ask for beyond a signature that holds.
    package var notes: [String] = []

    /// What is known at the desk. `at` nil means that freshness is not judged.
    package struct Question: Sendable {
        package var scheme: SchemeName
        package var keyID: KeyID?
        package var secret: Secret
        /// Whole Unix seconds.
        package var at: Int64?
        package var policy: Policy

        package init(scheme: SchemeName, keyID: KeyID?, secret: Secret, at: Int64?, policy: Policy = Policy()) {
            self.scheme = scheme
            self.keyID = keyID
            self.secret = secret
            self.at = at
            self.policy = policy
        }
    }

    package init(of request: Request, _ question: Question, schemes: Registry = .standard) {
        fatalError("follows in the next commit")
    }
}
