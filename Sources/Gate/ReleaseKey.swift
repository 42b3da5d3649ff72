import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The key of one version of an app on one platform: which app is calling, and by what rules it is judged.
package final class ReleaseKey: Sendable {
    /// Which of the two keys that may live under one id.
    package enum Edition: Sendable, Equatable { case current, next }

    package let id: KeyID
    package let app: String
    /// As the authority knows it, lower-case: `ios`, `android`, …
    package let platform: String
    package let version: String
    package let scheme: SchemeName
    package let policy: Policy
    package let retirement: Retirement?
    /// What the policy says of this key's scheme, looked up once.
    let allowance: Allowance
    /// What signatures must verify under, made ready for this scheme's MAC.
    package let key: SigningKey
    /// The key that will follow it: while both are in the field, both verify.
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
        allowance = Allowance(policy, scheme)
        self.key = key
        self.nextKey = nextKey
    }
}

/// What a policy says of one scheme.
struct Allowance: Sendable {
    let isAllowed: Bool
    /// Seconds either side of now.
    let window: Int64
    /// Seconds east of UTC of clocks that send no zone.
    let timezoneOffset: Int64
    let replay: Policy.ReplayRule
    let publicURL: [UInt8]?
    let formMD5Key: FormMD5.KeyPlace
    let unsignedPayload: Policy.Permission
    /// Seconds from its creation for which a presigned URL may live, whatever it says itself.
    let presignedLifetime: Int64
    let requiredFields: RequiredFields
    /// The label of the signature that counts; nil where the message marks it, and for schemes with one signature only.
    let label: String?

    init(_ policy: Policy, _ scheme: SchemeName) {
        isAllowed = policy.schemes.contains(scheme)
        window = Int64(scheme.freshSeconds(within: policy.window(for: scheme)))
        timezoneOffset = Int64(policy.timezoneOffset)
        replay = policy.replays[scheme] ?? .unsafeOnly
        unsignedPayload = policy.unsignedPayload
        presignedLifetime = Int64(max(policy.presignedLifetime ?? policy.window(for: scheme), 0))
        label = scheme == .messageSignatures ? policy.signatureLabel : nil
        formMD5Key = policy.formMD5Key
        publicURL = policy.publicURL.map { Array($0.utf8) }
        requiredFields = RequiredFields(policy.requiredFields)
    }
}

/// Where the gate finds keys. In memory for every live release; a source that must ask a store may suspend.
package protocol KeySource: Sendable {
    /// The release key of that id; nil where there is none.
    nonisolated(nonsending) func key(for id: KeyID) async throws(Fault) -> ReleaseKey?

    /// Whether the policy of any app lets requests to `host` be signed inside a form body, by form-md5,
    /// auth-v1 or auth-v2. Where none does, no body of a stranger is read in search of a signature. `host` is
    /// as the client wrote it.
    func allowsSignedForms(at host: Span<UInt8>) throws(Fault) -> Bool

    /// The app whose policy `legacy-host` names `host`; nil where none does, or more than one. Unsigned
    /// requests belong to that app, and to no other. `host` is as the client wrote it.
    func app(at host: Span<UInt8>) throws(Fault) -> HostedApp?

    /// Other releases of the same app that speak the same scheme, retired ones too: for explanations, which a secret
    /// that was mixed up is told by. A few are enough.
    nonisolated(nonsending) func siblings(of release: ReleaseKey) async throws(Fault) -> [ReleaseKey]

    /// Some release of message-signatures of that app and platform: for explanations to sessions that name none.
    nonisolated(nonsending) func anyRelease(of app: String, on platform: String) async throws(Fault) -> ReleaseKey?
}

extension KeySource {
    package func allowsSignedForms(at host: Span<UInt8>) throws(Fault) -> Bool { true }

    package func app(at host: Span<UInt8>) throws(Fault) -> HostedApp? { nil }

    package nonisolated(nonsending) func siblings(of release: ReleaseKey) async throws(Fault) -> [ReleaseKey] { [] }

    package nonisolated(nonsending) func anyRelease(
        of app: String, on platform: String
    ) async throws(Fault) -> ReleaseKey? { nil }
}
