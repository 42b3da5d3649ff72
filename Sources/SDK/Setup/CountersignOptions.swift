import CountersignTransport
import CountersignTrust
import CountersignVault

/// How a client goes about it. Each has a default that is safe.
public struct CountersignOptions: Sendable {
    /// Whether requests go over TLS.
    public enum Encryption: Sendable, Hashable {
        /// They do; a base URL without it is refused.
        case required
        /// For a test bench. Signatures still hold; nothing is private, and the password's registration needs the authority's key.
        case noneSoThatAnybodyReadsAndChangesEverything
    }

    /// What a request does while there is nobody to make it for, or no version that may.
    public enum Pause: Sendable, Hashable {
        /// It fails at once, with the error that says why.
        case fail
        /// It waits: after a session's end until the same account has signed in again, after ``CountersignState/updateRequired(url:)`` until
        /// ``CountersignClient/continueDespiteUpdate()``. The request that brought the news fails all the same. When somebody else signs in, it
        /// fails: it was not his. At the gate (``Gate``) it waits until somebody shows that he is there.
        case wait
    }

    /// What outlives the process.
    public enum Remembering: Sendable, Hashable {
        /// The session; never the password. Whoever starts the app again is signed in.
        case session
        /// Nothing: the login page is the first thing that is seen.
        case nothing
    }

    /// Whether the server's cookies are kept and sent back.
    public enum Cookies: Sendable, Hashable {
        /// They are not: `Set-Cookie` changes nothing, and a request has the `Cookie` field that the app gives it.
        case ignored
        /// In memory, for this client alone: ``CookieStore``.
        case keptUntilSignOut
    }

    /// Where passwords, and tokens that whoever reads them can use, may go. Never but over TLS. Logins by OPAQUE send neither.
    public enum BearerSecrets: Sendable, Hashable {
        /// Where the trust names the server's own key or certificate, or an authority for it.
        case onlyToThePinnedCertificate
        /// Also where only one of the machine's many authorities says who is there.
        case toAnyCertificateThatVerifies
    }

    /// Whether ``CountersignClient/logIn(_:_:by:)`` may send a password, for accounts that are still on the
    /// login ladder of an older system. It is a choice for the whole app: which accounts these are is not
    /// told to any client.
    public enum PasswordLogin: Sendable, Hashable {
        /// Never. An account on the ladder cannot sign in by OPAQUE.
        case never
        /// Where OPAQUE finds the name or the password wrong, the password is sent once, whatever the name.
        /// Over TLS and to a pinned certificate alone, and never for an account that this device has signed
        /// in, or signed up, by OPAQUE: a digest of each such name stays in the vault, whatever
        /// ``CountersignOptions/remembers`` says. The server takes the account off the ladder, and OPAQUE
        /// signs in. Turn it off again once the accounts have moved: until then a wrong password that is
        /// typed on a new device reaches the server, and a server that lies can have a right one.
        case onFirstSignInOverPinnedTLS
    }

    /// What becomes of a client whose release key has no authority key, and whose trust does not pin the server's certificate.
    public enum MissingAuthorityKey: Sendable, Hashable {
        /// It is not made: nothing that the server says could be verified.
        case isAnError
        /// It is made. The clock is not corrected, and the end of a session not noticed, since refusals are not verified; nobody can
        /// sign up. For tools that are pointed at a server by hand.
        case leavesRefusalsUnverified
    }

    /// Where the device's signing key is kept. It is made at a login, and needed for refreshes, for another password and for routes
    /// that ask for the device's signature.
    public enum DeviceKey: Sendable {
        /// In the vault, without anybody's presence; in hardware (``DeviceKeyStorage``) only wrapped.
        case kept
        /// There alone: what needs it runs in ``CountersignClient/withPresence(_:_:)``. Outside of that such a step throws
        /// ``CountersignError/presenceNeeded`` and the state is ``CountersignState/locked``; requests under a live token go on, once ``Gate`` is
        /// passed.
        case boundToPresence(UserPresence)
    }

    /// What makes and uses the device's keys. A login goes by it; a session that was begun before goes on
    /// with the keys that it has. The server is told which of them it came to
    /// (``CountersignClient/Session/keyStorage``).
    public enum DeviceKeyStorage: Sendable, Hashable {
        /// The Secure Enclave on Apple's platforms, a TPM 2.0 that this process may open (`/dev/tpmrm0`) on
        /// Linux: a copy of the vault is of no use on another device. Software on a device that has none, or
        /// whose hardware does not work.
        case hardwareWhereThereIsOne
        /// Hardware; without it a login throws ``CountersignError/deviceKeyUnavailable(_:)``.
        case hardwareOnly
        /// The program itself: whoever copies the vault and opens it has the keys.
        case softwareOnly
    }

    /// Whether somebody must show that he is there after a silent login, where the device's key is bound to presence.
    public enum Gate: Sendable, Hashable {
        /// Once in each process: ``CountersignClient/resume()`` ends in ``CountersignState/locked``, and what is asked in the account's name is held
        /// back (``Pause``) until ``CountersignClient/unlock(_:)`` or ``CountersignClient/withPresence(_:_:)`` has succeeded. Who signs in is through.
        case atLaunch
        /// Only what needs the key asks for him.
        case none
    }

    /// What carries the requests.
    public enum Carriage: Sendable {
        /// The platform's own, with these options. Their `observe` goes on being called.
        case standard(TransportOptions)
        /// Another; it is told the client's trust.
        case custom(any Carrier)
    }

    /// How the device presents itself at a login.
    public var device = DeviceDescription(.other, name: "unnamed")
    /// Where the authority's own routes begin, below the base URL's host.
    public var routes = "/countersign/v1"
    /// TLS, or for a bench none.
    public var encryption = Encryption.required
    /// Time-outs, the number of requests at once, proxies; or a transport of one's own.
    public var carriage = Carriage.standard(TransportOptions())
    /// Where time comes from.
    public var clock = DeviceClock.system
    /// How values become JSON.
    public var json = JSONCoding.standard
    /// Whoever stands between the app and its server, the outermost first.
    public var interceptors: [any APIInterceptor] = []
    /// How often a request is sent again that failed for now.
    public var retry = RetryPolicy.never
    /// Whether the server's cookies are kept.
    public var cookies = Cookies.ignored
    /// Where the client writes what it does.
    public var log = CountersignLog.off
    /// Bytes of an answer that is collected whole, at most.
    public var largestAnswer = 16 << 20
    /// What a request does while traffic is paused.
    public var whenPaused = Pause.fail
    /// What outlives the process, until ``CountersignClient/remember(_:)`` says otherwise.
    public var remembers = Remembering.session
    /// Where the device's signing key is kept.
    public var deviceKey = DeviceKey.kept
    /// What makes and uses the device's keys.
    public var deviceKeyStorage = DeviceKeyStorage.hardwareWhereThereIsOne
    /// The hardware that counts; nil for none. For tools that name theirs, and for tests.
    package var deviceKeyHardware = DeviceKeyHardware.ofThisMachine
    /// Whether somebody must be there after a silent login.
    public var gate = Gate.atLaunch
    /// Where passwords may go.
    public var bearerSecrets = BearerSecrets.onlyToThePinnedCertificate
    /// Whether a login may send a password, for accounts on the login ladder.
    public var passwordLogin = PasswordLogin.never
    /// Whether a client may do without the authority's key and without a pinned certificate.
    public var missingAuthorityKey = MissingAuthorityKey.isAnError
    /// Who may replace the pins.
    public var pinUpdates = PinUpdates.none
    /// Names the app in each request; not signed.
    public var userAgent = "countersign"

    /// As above.
    public init() {}
}

/// How a device presents itself: its owner sees it among the account's sessions.
public struct DeviceDescription: Sendable, Hashable {
    /// What kind of thing it is. An app's policy may count sessions by it.
    public enum Kind: String, Sendable, CaseIterable {
        /// In this word, among the account's sessions.
        case phone, tablet, watch, tv, desktop, other
    }

    /// What kind of thing it is.
    public let kind: Kind
    /// For people: 1 to 64 bytes of UTF-8 without control characters.
    public let name: String

    /// As above; a client with a name that is none is not made.
    public init(_ kind: Kind, name: String) {
        self.kind = kind
        self.name = name
    }
}
