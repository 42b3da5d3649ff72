import CountersignTransport
import CountersignTrust
import CountersignVault

/// A client's options. Every default is the safe choice.
public struct CountersignOptions: Sendable {
    /// Whether requests go over TLS.
    public enum Encryption: Sendable, Hashable {
        /// Requests use TLS; the client rejects a base URL without it.
        case required
        /// No TLS, for a test bench. Signatures still hold; nothing is private, and a sign-up needs the
        /// authority's key.
        case noneSoThatAnybodyReadsAndChangesEverything
    }

    /// What a request does while its session has ended or the version is not served.
    public enum Pause: Sendable, Hashable {
        /// It fails at once, with the error that gives the reason.
        case fail
        /// It waits: after a session's end until the same account has signed in again, after
        /// ``CountersignState/updateRequired(url:)`` until ``CountersignClient/continueDespiteUpdate()``. The
        /// request that found out fails all the same. If another account signs in, the request fails: it
        /// belongs to the former account. At the gate (``Gate``) it waits until the user confirms their
        /// presence.
        case wait
    }

    /// What outlives the process.
    public enum Remembering: Sendable, Hashable {
        /// The session; never the password. The account is signed in again when the app starts.
        case session
        /// Nothing: the app starts with the login page.
        case nothing
    }

    /// Whether the server's cookies are kept and sent back.
    public enum Cookies: Sendable, Hashable {
        /// The client ignores `Set-Cookie`, and a request has the `Cookie` field that the app gives it.
        case ignored
        /// In memory, for this client alone: ``CookieStore``.
        case keptUntilSignOut
    }

    /// Where the client may send passwords and bearer tokens. Never without TLS. OPAQUE logins send neither.
    public enum BearerSecrets: Sendable, Hashable {
        /// Only if the trust pins the server's own key or certificate, or an authority for it.
        case onlyToThePinnedCertificate
        /// Also to a server whose certificate is issued by any authority that the machine trusts.
        case toAnyCertificateThatVerifies
    }

    /// Whether ``CountersignClient/logIn(_:_:by:)`` may send a password, for accounts that are still on the
    /// login ladder of an older system. It is a choice for the whole app: the server does not tell a client
    /// which accounts these are.
    public enum PasswordLogin: Sendable, Hashable {
        /// Never. An account on the ladder cannot sign in by OPAQUE.
        case never
        /// If OPAQUE finds the name or the password wrong, the client sends the password once, whatever the
        /// name. Only over TLS and to a pinned certificate, and never for an account that has signed in, or
        /// signed up, by OPAQUE on this device: a digest of each such name stays in the vault, whatever
        /// ``CountersignOptions/remembers`` says. The server takes the account off the ladder, and OPAQUE
        /// signs in. Turn it off again once the accounts have moved: until then a wrong password that is
        /// typed on a new device reaches the server, and a dishonest server can obtain a right one.
        case onFirstSignInOverPinnedTLS
    }

    /// What happens if a release key has no authority key and the trust does not pin the server's
    /// certificate.
    public enum MissingAuthorityKey: Sendable, Hashable {
        /// Creating the client fails: it could verify nothing that the server says.
        case isAnError
        /// Creating the client succeeds. It does not correct the clock or notice the end of a session, since
        /// it cannot verify refusals; sign-ups fail. For tools that are pointed at a server by hand.
        case leavesRefusalsUnverified
    }

    /// Where the device's signing key is stored. A login makes it, and it is needed for refreshes, for a
    /// change of password and for routes that ask for the device's signature.
    public enum DeviceKey: Sendable {
        /// In the vault, usable without presence; in hardware (``DeviceKeyStorage``) only wrapped.
        case kept
        /// Bound to presence alone: operations that need it run in ``CountersignClient/withPresence(_:_:)``.
        /// Outside of that such an operation throws ``CountersignError/presenceNeeded`` and the state is
        /// ``CountersignState/locked``; requests under a live token continue, once ``Gate`` is passed.
        case boundToPresence(UserPresence)
    }

    /// What makes and uses the device's keys. It applies to logins; an existing session continues with the
    /// keys that it has. The login tells the server which storage was used
    /// (``CountersignClient/Session/keyStorage``).
    public enum DeviceKeyStorage: Sendable, Hashable {
        /// The Secure Enclave on Apple's platforms: a copy of the vault is of no use on another device.
        /// Software on a device without it, as on Linux, or if it does not work.
        case hardwareWhereThereIsOne
        /// Hardware; without it, as on Linux, a login throws ``CountersignError/deviceKeyUnavailable(_:)``.
        case hardwareOnly
        /// Software: a party that copies the vault and opens it has the keys.
        case softwareOnly
    }

    /// Whether the user must confirm their presence after a silent login, if the device's key is bound to
    /// presence.
    public enum Gate: Sendable, Hashable {
        /// Once in each process: ``CountersignClient/resume()`` ends in ``CountersignState/locked``, and
        /// requests in the account's name are held back (``Pause``) until ``CountersignClient/unlock(_:)`` or
        /// ``CountersignClient/withPresence(_:_:)`` has succeeded. A login passes the gate.
        case atLaunch
        /// Only operations that need the key ask for presence.
        case none
    }

    /// The transport of the requests.
    public enum TransportChoice: Sendable {
        /// The platform's own, with these options. The client continues to call their `observe`.
        case standard(TransportOptions)
        /// A custom transport; it receives the client's trust.
        case custom(any RequestTransport)
    }

    /// How the device presents itself at a login.
    public var device = DeviceDescription(.other, name: "unnamed")
    /// The path prefix of the authority's own routes, below the base URL's host.
    public var routes = "/countersign/v1"
    /// TLS, or none for a test bench.
    public var encryption = Encryption.required
    /// Time-outs, the number of simultaneous requests, proxies; or a custom transport.
    public var transport = TransportChoice.standard(TransportOptions())
    /// The source of the time.
    public var clock = DeviceClock.system
    /// How values become JSON.
    public var json = JSONCoding.standard
    /// The interceptors between the app and its server, the outermost first.
    public var interceptors: [any APIInterceptor] = []
    /// How often the client repeats a request after a temporary failure.
    public var retry = APIRetryPolicy.never
    /// Whether the server's cookies are kept.
    public var cookies = Cookies.ignored
    /// Where the client writes its log.
    public var log = CountersignLog.off
    /// The most bytes of a response that is collected whole.
    public var largestAnswer = 16 << 20
    /// What a request does while traffic is paused.
    public var whenPaused = Pause.fail
    /// What outlives the process, until ``CountersignClient/remember(_:)`` says otherwise.
    public var remembers = Remembering.session
    /// Where the device's signing key is stored.
    public var deviceKey = DeviceKey.kept
    /// What makes and uses the device's keys.
    public var deviceKeyStorage = DeviceKeyStorage.hardwareWhereThereIsOne
    /// The hardware to use; nil for none. Tests replace it.
    package var deviceKeyHardware = DeviceKeyHardware.ofThisMachine
    /// Whether the user must confirm their presence after a silent login.
    public var gate = Gate.atLaunch
    /// Where the client may send passwords and bearer tokens.
    public var bearerSecrets = BearerSecrets.onlyToThePinnedCertificate
    /// Whether a login may send a password, for accounts on the login ladder.
    public var passwordLogin = PasswordLogin.never
    /// What a new password must be.
    public var passwordRules = PasswordRules()
    /// Whether a client may work without the authority's key and without a pinned certificate.
    public var missingAuthorityKey = MissingAuthorityKey.isAnError
    /// The source of replacement pins.
    public var pinUpdates = PinUpdates.none
    /// Names the app in each request; not signed.
    public var userAgent = "countersign"

    /// The default options.
    public init() {}
}

/// How a device presents itself: its owner sees it among the account's sessions.
public struct DeviceDescription: Sendable, Hashable {
    /// The class of the device. An app's policy may count sessions by it.
    public enum Kind: String, Sendable, CaseIterable {
        /// In this word, among the account's sessions.
        case phone, tablet, watch, tv, desktop, other
    }

    /// The class of the device.
    public let kind: Kind
    /// For people: 1 to 64 bytes of UTF-8 without control characters.
    public let name: String

    /// Creating a client with an invalid name fails.
    public init(_ kind: Kind, name: String) {
        self.kind = kind
        self.name = name
    }
}
