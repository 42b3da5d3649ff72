import CountersignSchemes
import CountersignWire

extension SignedCalls {
    /// An answer, and whose key it is signed with.
    package struct Answered: Sendable {
        package let response: Response
        /// Nil for an answer that nobody is known to have given: a backend's, which passes through unsigned.
        package let signer: KeyID?
        /// Why there is no signer; nil where there is one, or where it is still to come.
        package let doubt: Doubt?
        /// Where the body is still to come: who has signed the head, and what the body must turn out to be.
        package let toBeChecked: BodyCheck?

        /// A refusal; genuine where the authority is known to have said it.
        package internal(set) var notice: Notice?

        init(_ heard: Heard) {
            switch heard {
            case .genuine(let answer):
                response = answer.response
                signer = answer.keyID
                doubt = nil
                toBeChecked = nil
                notice = answer.notice
            case .begun(let begun, let check):
                response = begun
                signer = nil
                doubt = nil
                toBeChecked = check
                notice = nil
            case .unsigned(let unsigned, let why):
                response = unsigned
                signer = nil
                doubt = why
                toBeChecked = nil
                notice = unsigned.status >= 400 ? Notice(unsigned) : nil
            }
        }
    }

    /// An answer whose head is signed is genuine once its body is what the head says. Pass what comes through a
    /// ``BodyDigest`` of `expectation`; its last bytes are not to be believed before that is finished.
    package struct BodyCheck: Sendable {
        package let signer: KeyID
        package let expectation: BodyExpectation
    }

    /// What follows where no answer comes.
    package enum LostAnswer: Sendable {
        /// It is sent once more: what it bears tells a second copy from a second wish.
        case askAgain
        /// The outcome is unknown. For what a second copy would be refused for, though the first was taken.
        case stop
    }
}

/// Whether there is a body for another copy of a request.
package enum BodyUse: Sendable {
    case repeatable
    /// A stream that is gone once it was read. `isUsedUp` says whether a byte of it was taken: then no copy is sent any more, and
    /// ``ClientProblem/bodyUsedUp`` says that another body is needed.
    case once(isUsedUp: @Sendable () -> Bool)

    var isUsedUp: Bool {
        switch self {
        case .repeatable: false
        case .once(let isUsedUp): isUsedUp()
        }
    }
}
