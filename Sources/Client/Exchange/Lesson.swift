import CountersignHandshake
import CountersignSchemes
import CountersignWire

/// What a refusal of a call teaches about the session that it was made in.
///
/// Only the authority's own word teaches anything, and of a device's session only what is said with that session's key: under the
/// authority's, the same word may concern what somebody on the way has added.
enum Lesson {
    case none
    /// The session, or the bearer token that was sent, is over.
    case isOver
    case ranOut
    /// What time it is, Unix seconds.
    case time(Int64)
    /// The key that was signed with is not known, or not its signature.
    case isNotKnown(DeviceSession)
    case wantsDevice

    init(_ notice: Notice, signedBy signer: KeyID?, of login: SignedIn, _ installation: Installation) {
        let code = Refusal.Code(rawValue: notice.code)
        guard notice.isGenuine else {
            // Where the connection vouches, it came from the authority or its backend; the authority's own route will tell.
            let isHint = code == .tokenExpired || code == .sessionEnded
            guard isHint, case .bearer = login.session, installation.connectionVouches else {
                self = .none
                return
            }
            self = .ranOut
            return
        }
        self =
            switch (code, login.session) {
            case (.stale, _): notice.timeTold.map { .time($0) } ?? .none
            case (.sessionEnded, .bearer): .isOver
            case (.tokenExpired, .bearer): .ranOut
            case (.sessionEnded, .device(let session)): signer == KeyID(session.token) ? .isOver : .none
            case (.tokenExpired, .device(let session)): signer == KeyID(session.token) ? .ranOut : .none
            case (.unknownKey, .device(let session)), (.badSignature, .device(let session)): .isNotKnown(session)
            case (.deviceUnsigned, .device): .wantsDevice
            default: .none
            }
    }
}
