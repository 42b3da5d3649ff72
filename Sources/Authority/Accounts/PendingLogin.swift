import CountersignGate
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// A login between its start and its finish. Taken out of ``PendingLogins`` once, by whoever finishes it, who then is the only
/// one to have it: that is what makes it safe to hand over.
final class PendingLogin: @unchecked Sendable {
    /// Whose start it was, for a table that is full: one party's logins give way to its own, not to others'.
    enum Holder: Sendable, Hashable {
        case address(ClientAddress)
        /// A device that the account knows, by its id and the account.
        case device([UInt8])
    }

    let binding: LoginBinding
    let app: AppName
    let purpose: LoginBinding.Purpose
    /// The account's row; nil for names without one, whose logins end like a wrong password's.
    let account: Int64?
    /// Of the registration that the password is proved against.
    let credential: [UInt8]
    let ke1: [UInt8]
    let ke2: [UInt8]
    /// Sessions and limits: what was debited, and for a change of password whose session it is.
    let receipt: LoginLimits.Receipt
    let session: SessionID?
    private var login: ServerLogin?

    init(
        _ login: consuming ServerLogin, _ start: LoginStart, account: Int64?, credential: [UInt8],
        receipt: LoginLimits.Receipt
    ) {
        ke2 = login.ke2.bytes
        self.login = consume login
        binding = start.binding
        app = start.app
        purpose = start.purpose
        ke1 = start.ke1.bytes
        session = start.session
        self.account = account
        self.credential = credential
        self.receipt = receipt
    }

    /// OPAQUE's session key where the client's MAC holds; nil where it does not, and at any second time.
    func finish(_ ke3: [UInt8]) -> Secret? {
        guard let login = login.take(), let ke3 = try? KE3(ke3) else { return nil }
        return try? login.finish(ke3)
    }
}
