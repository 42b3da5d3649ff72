import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The recovery steps that remain for a request.
struct RetryBudget {
    enum Recovery: CaseIterable {
        case resend, refresh, secondRefresh, correctClock, refreshUnknownKey, secondRefreshUnknownKey
        case useReplacedToken, addDeviceSignature
    }

    /// The signatures that a request carries. A device signature costs a read of its key, so the client adds
    /// it only if the server asks for it, or if the user is present for it.
    enum SignatureSet { case session, sessionAndDevice }

    private var left = Set(Recovery.allCases)

    init(_ ifLost: SignedCalls.LostAnswer) {
        if ifLost == .stop { left.remove(.resend) }
    }

    func proof(_ environment: ClientEnvironment) -> SignatureSet {
        left.contains(.addDeviceSignature) && environment.signer == nil ? .session : .sessionAndDevice
    }

    mutating func spend(_ recovery: Recovery) -> Bool { left.remove(recovery) != nil }
}

/// What a refusal of a call says about the call's session.
///
/// The client acts only on a refusal that the authority signed and, for a device session, only on one that is
/// signed with that session's key: under the authority's own key, the refusal may concern something that a
/// party on the path has added.
enum RecoveryAction {
    case none
    /// The session, or the bearer token that was sent, is over.
    case sessionEnded
    case tokenExpired
    /// The authority's time, Unix seconds.
    case time(Int64)
    /// The server does not know the signing key, or says that the signature is not that key's.
    case unknownKey(DeviceSession)
    case deviceSignatureRequired

    init(for notice: RefusalNotice, signedBy signer: KeyID?, login: ActiveLogin, installation: Installation) {
        let code = Refusal.Code(rawValue: notice.code)
        guard notice.isGenuine else {
            // If the connection is pinned, the refusal came from the authority or its backend; the
            // authority's own route decides.
            let isHint = code == .tokenExpired || code == .sessionEnded
            guard isHint, case .bearer = login.session, installation.connectionVouches else {
                self = .none
                return
            }
            self = .tokenExpired
            return
        }
        self =
            switch (code, login.session) {
            case (.stale, _): notice.timeTold.map { .time($0) } ?? .none
            case (.sessionEnded, .bearer): .sessionEnded
            case (.tokenExpired, .bearer): .tokenExpired
            case (.sessionEnded, .device(let session)): signer == KeyID(session.token) ? .sessionEnded : .none
            case (.tokenExpired, .device(let session)): signer == KeyID(session.token) ? .tokenExpired : .none
            case (.unknownKey, .device(let session)), (.badSignature, .device(let session)):
                .unknownKey(session)
            case (.deviceUnsigned, .device): .deviceSignatureRequired
            default: .none
            }
    }
}
