import CountersignWire

/// One way of signing requests. A scheme *describes*: what it covers, how it reads and writes, its string to sign. It
/// cannot verify; only the gate can. Signing and verifying share ``spell(_:_:_:)``, so they cannot drift apart.
package protocol Scheme: Sendable {
    var name: SchemeName { get }
    var coverage: Coverage { get }
    /// How a caller of this scheme expects to be answered.
    var dialect: AnswerDialect { get }

    /// Whether the request bears signs of this scheme, well formed or not. `names` are the request's own.
    func trace(in request: Request, names: ParameterNames) -> Trace

    /// Reads the signature, and leaves in `workspace` what ``spell(_:_:_:)`` needs. Nil where there is no trace of one.
    /// `names` are the request's own.
    func claim(
        in request: Request, names: ParameterNames, _ workspace: inout Workspace
    ) throws(Refusal) -> Claim?

    /// The same, of the signature with that label; for schemes whose requests may bear several.
    func claim(in request: Request, labelled label: String, _ workspace: inout Workspace) throws(Refusal) -> Claim?

    /// Writes the string to sign into `workspace.text`.
    func spell(_ claim: Claim, _ request: Request, _ workspace: inout Workspace) throws(Refusal)

    /// Writes another spelling of the same request, which clients in the field are known to sign: the first for
    /// `attempt` 0, and so on. Asked after ``spell(_:_:_:)``, and only where its text does not have the signature. No two
    /// requests of different meaning may share a spelling; a scheme that has more than one argues it.
    func respell(
        _ attempt: Int, _ claim: Claim, _ request: Request, _ workspace: inout Workspace
    ) throws(Refusal) -> Respelling

    /// Why a request is refused although its signature holds: the spelling that was written last, and holds, is that of
    /// another request too. Nil where it is this one's alone, as it is in all but a few.
    func ambiguity(of request: Request, _ workspace: borrowing Workspace) -> String?

    /// Signs `draft` in place. `at` is in whole Unix seconds; `nonce` is new for each request.
    func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String) throws(Refusal)
}

extension Scheme {
    /// The same, where the request's parameter names have not been scanned yet.
    package func trace(in request: Request) -> Trace { trace(in: request, names: .find(in: request)) }

    /// The same, where the request's parameter names have not been scanned yet.
    package func claim(in request: Request, _ workspace: inout Workspace) throws(Refusal) -> Claim? {
        try claim(in: request, names: .find(in: request), &workspace)
    }

    package func claim(
        in request: Request, labelled label: String, _ workspace: inout Workspace
    ) throws(Refusal) -> Claim? { try claim(in: request, &workspace) }

    /// Most schemes have one spelling.
    package func respell(
        _ attempt: Int, _ claim: Claim, _ request: Request, _ workspace: inout Workspace
    ) throws(Refusal) -> Respelling { .exhausted }

    package func ambiguity(of request: Request, _ workspace: borrowing Workspace) -> String? { nil }
}

/// Whether there was one more spelling to try.
package enum Respelling: Sendable, Equatable {
    case written
    case exhausted
}

/// What a look at a request says about one scheme.
package enum Trace: Sendable, Equatable {
    case absent
    case present
    /// The scheme signs inside the body, and this body was too large to be read before the gate.
    case outOfReach
}

/// The form of answers a caller understands.
package enum AnswerDialect: Sendable, Equatable {
    /// Status codes and problem documents. Source: RFC 9457.
    case problem
    /// Always 200, with `{"err":{…}}` inside. Source: docs/protocol.md, form-md5.
    case legacy
}
