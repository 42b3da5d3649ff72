import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Where the gate finds sessions: all that live are in memory. Ended ones are found too, for as long as they are kept.
package protocol SessionSource: Sendable {
    /// The session of that token with the key that signs under it; nil where there is none, and for epochs whose key is
    /// no longer kept.
    nonisolated(nonsending) func session(for token: SessionToken) async throws(Fault) -> (Session, SigningKey)?

    /// The session of a bearer token; nil where there is none. Only the token's hash is looked up.
    nonisolated(nonsending) func session(bearing token: Span<UInt8>) async throws(Fault) -> Session?

    /// The key that the device of that session signs with; nil where there is no such session, and for bearers.
    nonisolated(nonsending) func deviceKey(of id: SessionID) async throws(Fault) -> P256Point?

    /// The upload ticket of that text, and the session that asked for it, over or not; nil where there is none.
    /// What is no ticket of ours is told from one without asking the store.
    nonisolated(nonsending) func uploadTicket(_ text: Span<UInt8>) async throws(Fault) -> (UploadTicket, Session)?

    /// A request under this session was good: the first one under a renewed key confirms that the client has it.
    func noteUse(of session: Session, at now: Int64)
}

extension SessionSource {
    package nonisolated(nonsending) func uploadTicket(
        _ text: Span<UInt8>
    ) async throws(Fault) -> (UploadTicket, Session)? { nil }
}

/// No sessions at all: for a gate that knows releases only.
package struct NoSessions: SessionSource {
    package init() {}

    nonisolated(nonsending) package func session(
        for token: SessionToken
    ) async throws(Fault) -> (Session, SigningKey)? { nil }

    nonisolated(nonsending) package func session(bearing token: Span<UInt8>) async throws(Fault) -> Session? { nil }

    nonisolated(nonsending) package func deviceKey(of id: SessionID) async throws(Fault) -> P256Point? { nil }

    package func noteUse(of session: Session, at now: Int64) {}
}
