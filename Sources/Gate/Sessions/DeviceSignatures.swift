import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Has the device itself signed? Asked where the route's level is ``RouteRule/Level/device``. A session's
/// request key lies in the app's memory; the device's key does not. Source: docs/protocol.md, "Device-signed
/// routes".
struct DeviceSignatures: Sendable {
    private let source: any SessionSource
    private let scheme = MessageSignatures()
    private let failures: PublicKeyFailures

    init(_ source: any SessionSource, _ failures: PublicKeyFailures) {
        self.source = source
        self.failures = failures
    }

    /// `label` is that of the signature under which the caller was let in; `network` is where the client calls from.
    nonisolated(nonsending) func check(
        _ caller: Caller, sending request: Request, on route: RouteRules.Decision, signed label: Slice,
        from network: () -> [UInt8], at now: Int64, _ work: WorkspaceLease
    ) async throws(Refusal) {
        guard let session = caller.session else { throw caller.release.needsSession(on: route) }
        guard session.kind == .device else {
            throw Refusal(
                .forbidden,
                "session \(session.id) has no device key to sign with, and " + caller.release.demandOfDevice(by: route))
        }
        guard let claim = try scheme.deviceClaim(in: request, over: label, &work.space) else {
            throw Refusal(
                .deviceUnsigned,
                "no signature with tag=\"\(MessageSignatures.deviceTag)\": " + caller.release.demandOfDevice(by: route))
        }
        guard claim.holder == .session(SessionToken(id: session.id, epoch: session.epoch)) else {
            throw Refusal(.badSignature, "the device's signature: keyid \(claim.keyID) is not the session's token")
        }
        try scheme.spell(claim, request, &work.space)
        let place = PublicKeyFailures.Place(claim.keyID, from: network())
        if let place { try failures.check(place, at: now) }
        guard claim.compare(with: try await key(of: session), work.space) == .equal else {
            if let place { failures.count(place, at: now) }
            throw Refusal(.badSignature, "the device's signature differs")
        }
    }

    nonisolated(nonsending) private func key(of session: Session) async throws(Refusal) -> P256Point {
        do throws(Fault) {
            if let key = try await source.deviceKey(of: session.id) { return key }
        } catch {
            throw Refusal(.unavailable, "sessions: \(error.message)", retryAfter: 5)
        }
        throw Refusal(.unavailable, "session \(session.id): its device's key is gone", retryAfter: 5)
    }
}
