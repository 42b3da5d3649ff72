import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignWire
import Glibc

/// A scheme with a fault: every requirement without a faulty implementation goes to the inner scheme.
protocol FaultyScheme: Scheme {
    var inner: any Scheme { get }
}

extension FaultyScheme {
    var name: SchemeName { inner.name }
    var coverage: Coverage { inner.coverage }
    var dialect: ResponseDialect { inner.dialect }

    func detect(in request: Request, names: RequestParameterNames) -> SchemeDetection {
        inner.detect(in: request, names: names)
    }

    func claim(
        in request: Request, names: RequestParameterNames, workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        try inner.claim(in: request, names: names, workspace: &workspace)
    }

    func claim(
        in request: Request, labelled label: String, workspace: inout Workspace
    ) throws(Refusal) -> Claim? { try inner.claim(in: request, labelled: label, workspace: &workspace) }

    func writeStringToSign(for claim: Claim, of request: Request, into workspace: inout Workspace)
        throws(Refusal)
    {
        try inner.writeStringToSign(for: claim, of: request, into: &workspace)
    }

    func writeAlternative(
        _ attempt: Int, for claim: Claim, of request: Request, into workspace: inout Workspace
    ) throws(Refusal) -> AlternativeOutcome {
        try inner.writeAlternative(attempt, for: claim, of: request, into: &workspace)
    }

    func ambiguity(of request: Request, in workspace: borrowing Workspace) -> String? {
        inner.ambiguity(of: request, in: workspace)
    }

    func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String)
        throws(Refusal)
    {
        try inner.sign(&draft, as: credentials, at: at, nonce: nonce)
    }
}

/// Reads the body expectation of the signature, but does not enforce it.
struct UnverifiedBodyScheme: FaultyScheme {
    let inner: any Scheme

    init(_ inner: any Scheme) { self.inner = inner }

    func claim(
        in request: Request, names: RequestParameterNames, workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        try unverified(inner.claim(in: request, names: names, workspace: &workspace))
    }

    func claim(
        in request: Request, labelled label: String, workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        try unverified(inner.claim(in: request, labelled: label, workspace: &workspace))
    }

    private func unverified(_ claim: Claim?) -> Claim? {
        claim?.body = .anything
        return claim
    }
}

/// auth-v4 read with a JSON library that keeps the first member of each name.
struct FirstMemberScheme: FaultyScheme {
    let inner: any Scheme

    init(_ inner: any Scheme) { self.inner = inner }

    func claim(
        in request: Request, names: RequestParameterNames, workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        guard name == .authV4, detect(in: request, names: names) == .present else {
            return try inner.claim(in: request, names: names, workspace: &workspace)
        }
        var other = request
        // The inner scheme refuses a body that is not an object.
        if let body = try? FirstMemberScheme.firstMembers(of: request.body) { other.body = body }
        return try inner.claim(in: other, names: names, workspace: &workspace)
    }

    /// The object with only the first member of each name.
    private static func firstMembers(of body: [UInt8]) throws(ParseError) -> [UInt8] {
        var members = JSONMembers()
        var names: Set<[UInt8]> = []
        var kept: [[UInt8]] = []
        while let member = try members.next(in: body.span) {
            var name: [UInt8] = []
            try JSONMembers.forEachByte(of: member.name, in: body.span) {
                name.append(ASCII.lowercased($0))
            }
            guard names.insert(name).inserted else { continue }
            let quote = member.kind == .string ? 1 : 0
            kept.append(
                Array(body[member.name.range.lowerBound - 1..<member.value.range.upperBound + quote]))
        }
        return Array("{".utf8) + Array(kept.joined(separator: ",".utf8)) + Array("}".utf8)
    }
}

/// Verifies the path in `X-Original-Path`, which a proxy would set, without checking that a proxy set it.
struct HeaderPathScheme: FaultyScheme {
    let inner: any Scheme

    init(_ inner: any Scheme) { self.inner = inner }

    func writeStringToSign(for claim: Claim, of request: Request, into workspace: inout Workspace)
        throws(Refusal)
    {
        try inner.writeStringToSign(for: claim, of: request.atItsOriginalPath, into: &workspace)
    }

    func writeAlternative(
        _ attempt: Int, for claim: Claim, of request: Request, into workspace: inout Workspace
    ) throws(Refusal) -> AlternativeOutcome {
        try inner.writeAlternative(attempt, for: claim, of: request.atItsOriginalPath, into: &workspace)
    }
}

extension Request {
    fileprivate var atItsOriginalPath: Request {
        guard let original = value(of: "x-original-path") else { return self }
        var other = self
        let rest = Array(head[path.range.upperBound..<target.range.upperBound])
        let start = head.count
        other.head += Array(head[original.range]) + rest
        other.path = ByteRange(from: start, to: start + original.count)
        other.target = ByteRange(from: start, to: other.head.count)
        return other
    }
}

/// Takes the time of a comparison that ends at the first byte that differs, as `==` does. The verdict is
/// the gate's own.
struct ByteByByteScheme: FaultyScheme {
    /// Nanoseconds that a byte which fits takes: far more than in the field, so that few measurements
    /// show it.
    private static let delay = 4_000_000

    let inner: any Scheme
    private let keys: ReleaseKeyDirectory
    private let sessions: SessionDirectory

    init(_ inner: any Scheme, keys: ReleaseKeyDirectory, sessions: SessionDirectory) {
        self.inner = inner
        self.keys = keys
        self.sessions = sessions
    }

    func writeStringToSign(for claim: Claim, of request: Request, into workspace: inout Workspace)
        throws(Refusal)
    {
        try inner.writeStringToSign(for: claim, of: request, into: &workspace)
        delay(claim, workspace: workspace)
    }

    func writeAlternative(
        _ attempt: Int, for claim: Claim, of request: Request, into workspace: inout Workspace
    ) throws(Refusal) -> AlternativeOutcome {
        let outcome = try inner.writeAlternative(attempt, for: claim, of: request, into: &workspace)
        if outcome == .written { delay(claim, workspace: workspace) }
        return outcome
    }

    private func delay(_ claim: Claim, workspace: borrowing Workspace) {
        for key in candidates(for: claim) where claim.fits(key) && key.publicKey == nil {
            let expected = key.mac(claim.algorithm, of: workspace.text).array
            let sent = claim.mac.array
            guard expected.count == sent.count else { continue }
            let fitting = zip(expected, sent).prefix { $0 == $1 }.count
            for _ in 0..<fitting {
                var pause = timespec(tv_sec: 0, tv_nsec: ByteByByteScheme.delay)
                nanosleep(&pause, nil)
            }
            // The key after it is not tried.
            if fitting == sent.count { return }
        }
    }

    private func candidates(for claim: Claim) -> [SigningKey] {
        switch claim.holder {
        case .release:
            guard let id = claim.release, let release = try? keys.release(for: id),
                release.scheme == claim.scheme
            else { return [] }
            return [release.key, release.nextKey].compactMap(\.self)
        case .session(let token): return (try? sessions.session(for: token)).map { [$0.1] } ?? []
        case .unknown: return []
        }
    }
}
