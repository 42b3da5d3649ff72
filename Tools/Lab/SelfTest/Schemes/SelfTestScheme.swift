import CountersignSchemes
import CountersignWire

/// What the self-test knows of one scheme, so that no check chooses by name. The positions of the signature
/// and of the key id come from the scheme's ``SchemeLayout``.
protocol SelfTestScheme: Sendable {
    /// Signs a signed draft anew, as no Countersign client does.
    typealias SignatureRenewal = @Sendable (inout Draft, SelfTestSubject) throws(OperationalError) -> Void

    var name: SchemeName { get }

    // MARK: What is signed

    /// Parts of a request that the scheme does not sign.
    var weaknesses: SelfTestWeaknesses { get }
    /// Whether the scheme signs fields of the request.
    var signsFields: Bool { get }
    /// Whether the scheme has a place for signed responses.
    var signsResponses: Bool { get }
    /// The parameters of a signature that a check changes.
    var parameterChanges: [ParameterChange] { get }
    /// Ambiguities of the scheme: to be refused where a server can detect them, otherwise reported as a
    /// weakness.
    var ambiguityChecks: [SelfTestCheck] { get }

    // MARK: Changes to a signed draft

    /// Replaces the key id wherever the request states it, and keeps the signature.
    func replaceKeyID(by other: String, in draft: inout Draft) throws(OperationalError)
    /// Adds a second signature of the same scheme, valid or not.
    func addSignature(to draft: inout Draft)
    /// Adds markers of another scheme. `now` is in Unix seconds.
    func addMarkersOfAnotherScheme(to draft: inout Draft, at now: Int64)
    /// Signs the draft without a nonce; nil for a scheme without nonces.
    var removeNonce: SignatureRenewal? { get }
    /// Signs the draft without a part of it; nil for a scheme that fixes what is signed.
    func removeCoverage(of part: OptionalPart) -> SignatureRenewal?

    // MARK: Signing

    /// Adds what the scheme signs besides key and key id and a subject of another scheme may lack.
    func complete(_ credentials: inout Credentials)
}

/// A part of a request that a signature might not cover.
enum OptionalPart: Sendable { case query, body }

extension SchemeName {
    /// The table of schemes that the self-test attacks. Nil for the scheme that signs nothing.
    var selfTest: (any SelfTestScheme)? {
        switch self {
        case .messageSignatures: MessageSignaturesSelfTest()
        case .sigV4: SigV4SelfTest()
        case .formMD5: FormMD5SelfTest()
        case .authV1: AuthV1SelfTest()
        case .authV2: AuthV2SelfTest()
        case .authV4: AuthV4SelfTest()
        case .token: nil
        }
    }
}

extension SelfTestScheme {
    func replaceKeyID(by other: String, in draft: inout Draft) throws(OperationalError) {
        try draft.replaceKeyID(of: name, by: other)
    }

    /// Those of auth-v4: fields alone, which fit beside the signature of each other scheme.
    func addMarkersOfAnotherScheme(to draft: inout Draft, at now: Int64) {
        AuthV4SelfTest.addMarkers(to: &draft, at: now)
    }

    func complete(_ credentials: inout Credentials) {}
}

/// Parts of a request that a scheme does not sign, with the reason that a result states.
struct SelfTestWeaknesses: Sendable {
    /// With the change of method that is accepted; it is made to a request with a body.
    var method: (reason: String, change: @Sendable (inout Draft) -> Void)?
    var path: String?
    var body: String?
}

/// A change to one parameter of a signature.
struct ParameterChange: Sendable {
    /// The check's.
    let name: String
    /// The parameter, in the words of a report.
    let parameter: String
    /// Made to a signed draft without a body.
    let change: @Sendable (inout Draft) throws(OperationalError) -> Void

    init(
        _ name: String, of parameter: String,
        change: @escaping @Sendable (inout Draft) throws(OperationalError) -> Void
    ) {
        self.name = name
        self.parameter = parameter
        self.change = change
    }

    init(_ name: String, of parameter: String, at place: SchemeLayout.Place, to value: String) {
        self.init(name, of: parameter, at: place) { _ in value }
    }

    /// `value` makes the new value from the old one.
    init(
        _ name: String, of parameter: String, at place: SchemeLayout.Place,
        value: @escaping @Sendable (String) throws(OperationalError) -> String
    ) {
        self.init(name, of: parameter) { (draft) throws(OperationalError) in
            guard let old = draft.part(at: place) else {
                throw OperationalError(.failed, message: "cannot be staged: the request has no \(parameter)")
            }
            try draft.replacePart(at: place, by: try value(old))
        }
    }
}

extension String {
    /// A time with another last digit, which stays within any window. `end` follows the digits.
    func withAnotherLastDigit(before end: String = "") throws(OperationalError) -> String {
        let digits = dropLast(end.count)
        guard let last = digits.last?.wholeNumberValue else {
            throw OperationalError(.failed, message: "cannot be staged: `\(self)` is no time")
        }
        return digits.dropLast() + String(last == 0 ? 1 : last - 1) + end
    }
}
