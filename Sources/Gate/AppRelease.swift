import CountersignSchemes
import CountersignSeal
import CountersignWire

/// One version of an app on one platform: its keys, its scheme and the policy by which its requests are
/// judged.
package final class AppRelease: Sendable {
    /// Which of the two keys that may be valid under one id.
    package enum Edition: Sendable, Equatable { case current, next }

    package let id: KeyID
    package let app: String
    /// As the authority stores it, in lower case: `ios`, `android`, …
    package let platform: String
    package let version: String
    package let scheme: SchemeName
    package let policy: Policy
    package let retirement: Retirement?
    /// Nil if the policy has no traffic rules.
    package let traffic: AppTraffic?
    /// The part of the policy that applies to this key's scheme, resolved once.
    let schemePolicy: SchemePolicy
    /// The key that verifies signatures, prepared for this scheme's MAC.
    package let key: SigningKey
    /// The key that will replace `key`; until then, signatures under either key verify.
    package let nextKey: SigningKey?

    package init(
        id: KeyID, app: String, platform: String, version: String, scheme: SchemeName, policy: Policy,
        retirement: Retirement? = nil, key: SigningKey, nextKey: SigningKey? = nil
    ) {
        self.id = id
        self.app = app
        self.platform = platform
        self.version = version
        self.scheme = scheme
        self.policy = policy
        self.retirement = retirement
        traffic = AppTraffic(app: app, policy: policy)
        schemePolicy = SchemePolicy(policy, scheme: scheme)
        self.key = key
        self.nextKey = nextKey
    }
}

extension AppRelease {
    /// What the request's route requires.
    func decision(for request: Request) throws(Refusal) -> RouteRules.Decision {
        if let uniform = schemePolicy.uniformRoute { return uniform }
        return try policy.routes.decision(for: request)
    }
}

/// The part of a policy that applies to one scheme. A class, so that a verdict copies none of it.
final class SchemePolicy: Sendable {
    let isAllowed: Bool
    /// Seconds either side of now.
    let window: Int64
    /// Seconds east of UTC of clocks that send no zone.
    let timezoneOffset: Int64
    let replay: Policy.ReplayRule
    let settings: SchemeSettings
    let unsignedPayload: Policy.Permission
    /// The longest lifetime of a presigned URL, in seconds from its creation, whatever lifetime the URL
    /// states.
    let presignedLifetime: Int64
    let requiredFields: RequiredFields
    /// Whether its replay keys have the scope ``ReplayEntry/allKeys``.
    let isReplayedAcrossKeys: Bool
    /// The label of the signature that counts; nil where the message marks it, and for schemes with one
    /// signature only.
    let label: String?
    let hasLabel: Bool
    /// What all of the backend's routes require; nil where they differ.
    let uniformRoute: RouteRules.Decision?

    init(_ policy: Policy, scheme: SchemeName) {
        isAllowed = policy.schemes.contains(scheme)
        window = Int64(scheme.freshSeconds(within: policy.window(for: scheme)))
        timezoneOffset = Int64(policy.timezoneOffset)
        replay = policy.replays[scheme] ?? .unsafeOnly
        unsignedPayload = policy.unsignedPayload
        presignedLifetime = Int64(max(policy.presignedLifetime ?? policy.window(for: scheme), 0))
        label = scheme == .messageSignatures ? policy.signatureLabel : nil
        hasLabel = label != nil
        uniformRoute = policy.routes.uniformDecision
        settings = policy.schemeSettings
        requiredFields = RequiredFields(policy.requiredFields)
        if case .acrossKeys = scheme.traits.replayDetection {
            isReplayedAcrossKeys = true
        } else {
            isReplayedAcrossKeys = false
        }
    }
}

/// The source of the gate's keys. It holds every live release in memory. It never suspends the request: it
/// reads the store only after a change.
package protocol ReleaseSource: Sendable {
    /// Changes with every change of what ``release(for:)`` answers, and before it answers anything else. Nil
    /// for a source that has to be asked each time.
    var generation: ReleaseGeneration? { get }

    /// The release key of that id; nil if the id is unknown.
    func release(for id: KeyID) throws(OperationalError) -> AppRelease?

    /// The same for a request that is signed by `scheme`; nil where the key was made for another scheme.
    func release(for id: KeyID, scheme: SchemeName) throws(OperationalError) -> AppRelease?

    /// Whether the policy of any app lets requests to `host` be signed inside a form body, by form-md5,
    /// auth-v1 or auth-v2. If none does, the gate reads no unauthenticated body in search of a signature.
    /// `host` is as the client wrote it.
    func allowsSignedForms(at host: Span<UInt8>) throws(OperationalError) -> Bool

    /// The app whose policy `legacy-host` names `host`; nil where none does, or more than one. Unsigned
    /// requests belong to that app, and to no other. `host` is as the client wrote it.
    func app(at host: Span<UInt8>) throws(OperationalError) -> HostedApp?

    /// Whether the policy of any app, or of any release, wants callers told why they are refused. If none
    /// does, a refusal looks for no release to explain.
    var explainsRefusals: Bool { get }

    /// Which web pages may call the apps that have no host of their own; no entry for an app without such
    /// rules.
    var crossOriginRules: [CrossOriginRules] { get }

    /// Whether any app has such rules, with a host of its own or without.
    var hasCrossOriginRules: Bool { get }

    /// Other releases of the same app with the same scheme, including retired ones. An explanation tries
    /// their secrets to find out whether one was used by mistake. A few are enough.
    func siblings(of release: AppRelease) throws(OperationalError) -> [AppRelease]

    /// Any message-signatures release of that app and platform, for explaining requests of sessions that name
    /// no release.
    func anyRelease(of app: String, on platform: String) throws(OperationalError) -> AppRelease?
}

/// A number of each of the two things on which a source's answers depend.
package struct ReleaseGeneration: Sendable, Equatable {
    private let store: UInt64
    private let memory: UInt64

    /// Of what is stored, and of what was last read of it.
    package init(store: UInt64, memory: UInt64) { (self.store, self.memory) = (store, memory) }
}

extension ReleaseSource {
    package var generation: ReleaseGeneration? { nil }

    package var explainsRefusals: Bool { true }

    package var crossOriginRules: [CrossOriginRules] { [] }

    package var hasCrossOriginRules: Bool { false }

    package func release(
        for id: KeyID, scheme: SchemeName
    ) throws(OperationalError) -> AppRelease? {
        guard let release = try release(for: id), release.scheme == scheme else { return nil }
        return release
    }

    package func allowsSignedForms(at host: Span<UInt8>) throws(OperationalError) -> Bool { true }

    package func app(at host: Span<UInt8>) throws(OperationalError) -> HostedApp? { nil }

    package func siblings(of release: AppRelease) throws(OperationalError) -> [AppRelease] { [] }

    package func anyRelease(
        of app: String, on platform: String
    ) throws(OperationalError) -> AppRelease? { nil }
}

/// Fields that an app's policy requires to be sent and signed, beyond those of the scheme itself (policy
/// `cover`).
struct RequiredFields: Sendable {
    /// In lower case, as the parser writes field names. Sorted, so that a refusal names the same field each
    /// time.
    private let names: [[UInt8]]

    init(_ names: Set<String>) { self.names = names.sorted().map { Array($0.utf8) } }

    /// Call this only after the signature has been verified: before that, the covered fields are an unproven
    /// claim.
    func check(_ request: Request, claim: Claim) throws(Refusal) {
        for name in names { try check(name: name, request: request, claim: claim) }
    }

    /// Every line of the field must be covered: an uncovered line could have been inserted in transit.
    private func check(name: [UInt8], request: Request, claim: Claim) throws(Refusal) {
        // `.everything` means that all fields are forwarded, not that any field was signed.
        guard case .only = claim.coveredFields else {
            throw Refusal(
                .badSignature,
                detail:
                    "\(claim.scheme.rawValue) signs no fields, and the policy asks for "
                    + "\(RequiredFields.quoted(name))"
            )
        }
        var isSent = false
        for index in request.fields.indices
        where request.head.span.extracting(request.fields[index].name.range).matches(name.span) {
            guard claim.coveredFields.contains(index) else {
                throw Refusal(
                    .badSignature,
                    detail:
                        "the signature does not cover \(RequiredFields.quoted(name)), which the "
                        + "policy asks for"
                )
            }
            isSent = true
        }
        guard isSent else {
            throw Refusal(
                .badSignature,
                detail: "\(RequiredFields.quoted(name)) is not sent, and the policy asks for it")
        }
    }

    private static func quoted(_ name: [UInt8]) -> String { "\"\(name.span.text)\"" }
}
