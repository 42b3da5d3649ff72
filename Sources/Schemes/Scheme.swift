import CountersignWire

/// One way of signing requests. A scheme *describes* what it covers, how it reads and writes signatures, and
/// its string to sign. It cannot verify; only the gate can. Signing and verifying share
/// ``writeStringToSign(for:of:into:)``, so they cannot diverge.
package protocol Scheme: Sendable {
    var name: SchemeName { get }
    var coverage: Coverage { get }
    /// The form of response that a caller of this scheme expects.
    var dialect: ResponseDialect { get }
    /// What each request with signs of this scheme has. The gate does not ask the scheme about others.
    var evidence: SchemeEvidence { get }

    /// Whether the request bears signs of this scheme, well formed or not. `names` must come from this
    /// request.
    func detect(in request: Request, names: RequestParameterNames) -> SchemeDetection

    /// Reads the signature, and writes to `workspace` what ``writeStringToSign(for:of:into:)`` needs. Nil if
    /// there is no sign of one. `names` must come from this request.
    func claim(
        in request: Request, names: RequestParameterNames, workspace: inout Workspace
    ) throws(Refusal) -> Claim?

    /// Like ``claim(in:names:workspace:)``, for the signature with that label; for schemes whose requests may
    /// bear several.
    func claim(in request: Request, labelled label: String, workspace: inout Workspace) throws(Refusal)
        -> Claim?

    /// Writes the string to sign into `workspace.text`.
    func writeStringToSign(for claim: Claim, of request: Request, into workspace: inout Workspace)
        throws(Refusal)

    /// Writes an alternative string to sign for the same request, which known clients sign: the first for
    /// `attempt` 0, and so on. Called after ``writeStringToSign(for:of:into:)``, and only if the signature
    /// does not verify its text. Two requests of different meaning must not share a string to sign; a scheme
    /// with alternatives documents why they do not.
    func writeAlternative(
        _ attempt: Int, for claim: Claim, of request: Request, into workspace: inout Workspace
    ) throws(Refusal) -> AlternativeOutcome

    /// A reason to refuse the request although its signature is valid: another request has the same string to
    /// sign. Nil in the usual case. Called after the signature was verified against `workspace.text`.
    func ambiguity(of request: Request, in workspace: borrowing Workspace) -> String?

    /// The canonical request whose digest the string to sign contains (sigv4); empty for schemes whose string
    /// to sign contains the request's parts themselves.
    func canonicalRequest(in workspace: borrowing Workspace) -> String

    /// Signs `draft` in place. `at` is in whole Unix seconds; `nonce` is new for each request.
    func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String) throws(Refusal)
}

extension Scheme {
    /// ``detect(in:names:)`` where the request's parameter names have not been scanned yet.
    package func detect(in request: Request) -> SchemeDetection {
        detect(in: request, names: .find(in: request))
    }

    /// ``claim(in:names:workspace:)`` where the request's parameter names have not been scanned yet.
    package func claim(in request: Request, workspace: inout Workspace) throws(Refusal) -> Claim? {
        try claim(in: request, names: .find(in: request), workspace: &workspace)
    }

    package func claim(
        in request: Request, labelled label: String, workspace: inout Workspace
    ) throws(Refusal) -> Claim? { try claim(in: request, workspace: &workspace) }

    package var evidence: SchemeEvidence { .unknown }

    /// Most schemes have a single string to sign.
    package func writeAlternative(
        _ attempt: Int, for claim: Claim, of request: Request, into workspace: inout Workspace
    ) throws(Refusal) -> AlternativeOutcome { .exhausted }

    package func ambiguity(of request: Request, in workspace: borrowing Workspace) -> String? { nil }

    package func canonicalRequest(in workspace: borrowing Workspace) -> String { "" }
}

/// What a request must have so that it can bear signs of a scheme: one of these fields, or parameters with
/// one of these families of names.
package struct SchemeEvidence: Sendable {
    /// Families of parameter names by which schemes sign.
    package struct Parameters: OptionSet, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// `X-Amz-…`, in the query.
        static let amazon = Parameters(rawValue: 1)
        /// Those of form-md5.
        static let formMD5 = Parameters(rawValue: 2)
        /// `auth_…`.
        static let auth = Parameters(rawValue: 4)
    }

    private let fields: FieldNames
    private let parameters: Parameters
    private let isKnown: Bool

    package init(fields: FieldNames = FieldNames(), parameters: Parameters = []) {
        (self.fields, self.parameters, isKnown) = (fields, parameters, true)
    }

    private init() { (fields, parameters, isKnown) = (FieldNames(), [], false) }

    /// Of a scheme that is to be asked about each request.
    package static let unknown = SchemeEvidence()

    /// Whether the request may bear signs of the scheme.
    @inline(__always)
    func isPossible(in request: Request, parameters found: Parameters) -> Bool {
        !isKnown || !fields.isDisjoint(with: request.names) || !parameters.isDisjoint(with: found)
    }
}

/// Whether there was another string to sign to try.
package enum AlternativeOutcome: Sendable, Equatable {
    case written
    case exhausted
}

/// Whether a request bears signs of one scheme.
package enum SchemeDetection: Sendable, Equatable {
    case absent
    case present
    /// The scheme signs inside the body, and this body was too large to be read before the gate.
    case inUnreadBody
}

/// The form of response that a caller understands.
package enum ResponseDialect: Sendable, Equatable {
    /// Status codes and problem documents. Source: RFC 9457.
    case problem
    /// Always 200, with `{"err":{…}}` inside. Source: docs/protocol.md, form-md5.
    case legacy
}

/// What a scheme's signatures cover and what they leave unsigned, as data: the lab attacks the listed parts,
/// the tests change them one after the other, and the documentation prints them.
package struct Coverage: Sendable, Equatable {
    /// A part of a request that an attacker might change.
    package enum Part: String, Sendable, CaseIterable {
        case method
        case authority
        /// `http` or `https`.
        case transport
        case path
        case query
        case body
        /// Order and percent-encoding of parameters, and the `=` of an empty one.
        case querySpelling = "spelling of the query"
        /// Fields that the signature names.
        case namedFields = "fields the signature names"
        /// White space in them, and whether their values came in one line or several.
        case fieldSpelling = "spelling of named fields"
        /// Whether a named field's values came in one line, joined by commas, or in several.
        case fieldLines = "lines of named fields"
        /// Whether a path without a query is followed by `?`.
        case emptyQuery = "empty query"
        /// Fields that it does not name.
        case otherFields = "other fields"
        /// Creation time, nonce, key id and whatever else the scheme signs about the signature itself.
        case signatureParameters = "signature parameters"
        /// Names and values of form parameters.
        case formParameters = "form parameters"
        /// How those are written: order, percent-encoding, `+` for a space.
        case formSpelling = "spelling of form parameters"
        /// Names and values of a JSON body's outermost members, the containers among these as they are
        /// written.
        case jsonMembers = "members of a JSON body"
        /// How those are written: order, white space, escapes, and the type of a value.
        case jsonSpelling = "spelling of a JSON body"
    }

    package var covered: [Part]
    package var uncovered: [Part]
    /// The known weaknesses of the scheme itself, one sentence each.
    package var weaknesses: [String]

    package init(covered: [Part], uncovered: [Part], weaknesses: [String] = []) {
        self.covered = covered
        self.uncovered = uncovered
        self.weaknesses = weaknesses
    }
}
