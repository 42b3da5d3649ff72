import CountersignHandshake
import CountersignWire

extension SignedCalls {
    /// Whose a request is. Whatever takes time before it is sent, or before it is sent again, somebody else may sign in meanwhile.
    package enum Owner: Sendable, Equatable {
        /// Of whoever is signed in when it is sent first; its other copies are his, too.
        case whoeverIsSignedIn
        case account(AccountName)
        /// For what is said of one session, as that it be ended: the same account's next one is another.
        case session(SessionID)

        /// Throws ``ClientProblem/accountChanged`` where `login` is another's.
        func check(_ login: SignedIn) throws(ClientProblem) {
            let isHis =
                switch self {
                case .whoeverIsSignedIn: true
                case .account(let account): login.account == account
                case .session(let session): login.id == session
                }
            guard isHis else { throw .accountChanged }
        }

        func settled(by login: SignedIn) -> Owner { self == .whoeverIsSignedIn ? .account(login.account) : self }
    }
}
