import CountersignClient
import CountersignTrust
import CountersignWire

/// In whose name a call goes out: of who is known to be signed in when the app makes it, through all its copies, however long a
/// body is hashed, an interceptor waits, or traffic is held. Safe to share among calls that are one wish.
final class CallOwner: Sendable {
    private let settled = Locked<AccountName?>(nil)

    /// Nil while nobody is known.
    var account: AccountName? { settled.with { $0 } }

    /// The first whom this names is it.
    func settle(_ account: AccountName?) { settled.with { $0 = $0 ?? account } }

    /// As the state machine takes it.
    var signing: SignedCalls.Owner { account.map { .account($0) } ?? .whoeverIsSignedIn }
}

extension ClientCore {
    /// Settles whose a call is, where somebody is known to be signed in.
    func settle(_ owner: CallOwner, for caller: APIRequest.Caller) async throws(CountersignError) {
        guard caller == .account, owner.account == nil else { return }
        try await open()
        do throws(ClientProblem) {
            owner.settle(try keeper.state().login?.account)
        } catch {
            throw CountersignError(error)
        }
    }
}
