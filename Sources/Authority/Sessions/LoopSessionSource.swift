import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignThreads
import CountersignWire

/// The sessions for the gate of one event loop, where the store is a server that may let a reader wait. What
/// is in memory is answered at once; anything else is read on a thread of `pool`, while the loop serves other
/// requests. Source: docs/decisions/0076-reads-off-the-loops.md.
///
/// Unchecked, because a gate's parts must be sendable, and the compiler does not see that this one stays on
/// its loop: `noted` and `finished` are accessed on the loop only. Other threads use the directory and the
/// pool, which are safe to share.
package final class LoopSessionSource: SessionSource, DeferredLookups, @unchecked Sendable {
    private enum Lookup: Sendable, Equatable {
        case session(SessionToken)
        case bearer([UInt8])
        case deviceKey(SessionID)
        case ticket([UInt8])
    }

    /// What a lookup has found.
    private enum Finding: Sendable {
        /// The directory has the session now.
        case kept
        case nothing
        /// A token that was renewed is in no cache.
        case bearer(Session)
        /// The directory keeps it as well, unless the session changed during the lookup.
        case deviceKey(P256Point)
        case ticket(UploadTicketRecord, Session)
    }

    private struct Finished: Sendable {
        let lookup: Lookup
        let finding: Finding
    }

    private let directory: SessionDirectory
    private let pool: WorkPool
    private var noted: Lookup?
    /// Of the judgement that runs.
    private var finished: Finished?

    package init(_ directory: SessionDirectory, reading pool: WorkPool) {
        (self.directory, self.pool) = (directory, pool)
    }

    // MARK: Lookups

    package func session(for token: SessionToken) throws(OperationalError) -> (Session, SigningKey)? {
        do {
            return try directory.session(for: token, reads: .forbidden)
        } catch {
            if case .nothing? = try result(of: .session(token), after: error) { return nil }
            throw error
        }
    }

    package func session(bearing token: Span<UInt8>) throws(OperationalError) -> Session? {
        do {
            return try directory.session(bearing: token, reads: .forbidden)
        } catch {
            let text = token.withUnsafeBufferPointer { Array($0) }
            switch try result(of: .bearer(text), after: error) {
            case .bearer(let session)?: return session
            case .nothing?: return nil
            default: throw error
            }
        }
    }

    package func deviceKey(of id: SessionID) throws(OperationalError) -> P256Point? {
        do {
            return try directory.deviceKey(of: id, reads: .forbidden)
        } catch {
            switch try result(of: .deviceKey(id), after: error) {
            case .deviceKey(let key)?: return key
            case .nothing?: return nil
            default: throw error
            }
        }
    }

    package func uploadTicket(
        _ text: Span<UInt8>
    ) throws(OperationalError) -> (UploadTicketRecord, Session)? {
        guard directory.isIssued(uploadTicket: text) else { return nil }
        let text = text.withUnsafeBufferPointer { Array($0) }
        switch try result(of: .ticket(text), after: .needsStore) {
        case .ticket(let ticket, let session)?: return (ticket, session)
        case .nothing?: return nil
        default: throw .needsStore
        }
    }

    package func noteUse(of session: Session, at now: Int64) { directory.noteUse(of: session, at: now) }

    /// The finding of this lookup, if it is the one that has just finished, and is still true. Notes the
    /// lookup otherwise, and returns nil; throws `error` if that is another one.
    private func result(
        of lookup: Lookup, after error: OperationalError
    ) throws(OperationalError) -> Finding? {
        guard error == .needsStore else { throw error }
        // Before `isTrue` looks, as ``NodeLease`` says. Nothing else requires the lease for tickets.
        try directory.requireFreshLease()
        guard let finished, finished.lookup == lookup, isTrue(finished.finding) else {
            noted = lookup
            return nil
        }
        return finished.finding
    }

    private func isTrue(_ finding: Finding) -> Bool {
        switch finding {
        // Then the directory would have answered.
        case .kept: false
        case .nothing, .deviceKey: true
        case .bearer(let session), .ticket(_, let session): !directory.hasEnded(since: session)
        }
    }

    // MARK: DeferredLookups

    package var isNoted: Bool { noted != nil }

    package func begin(with finding: (any Sendable)?) {
        noted = nil
        finished = finding.flatMap { $0 as? Finished }
    }

    package func take() -> DeferredLookup? {
        guard let lookup = noted else { return nil }
        noted = nil
        let (pool, directory) = (pool, directory)
        return { () async throws(Refusal) in
            let found = try await pool.run { LoopSessionSource.find(lookup, in: directory) }
            switch found {
            case .success(let finding): return Finished(lookup: lookup, finding: finding)
            case .failure(let error): throw Refusal(error, in: "sessions")
            }
        }
    }

    private static func find(
        _ lookup: Lookup, in directory: SessionDirectory
    ) -> Result<Finding, OperationalError> {
        do throws(OperationalError) {
            switch lookup {
            case .session(let token):
                return .success(try directory.session(for: token) == nil ? .nothing : .kept)
            case .bearer(let text):
                guard let session = try directory.session(bearing: text.span) else {
                    return .success(.nothing)
                }
                return .success(.bearer(session))
            case .deviceKey(let id):
                guard let key = try directory.deviceKey(of: id) else { return .success(.nothing) }
                return .success(.deviceKey(key))
            case .ticket(let text):
                guard let (ticket, session) = try directory.uploadTicket(text.span) else {
                    return .success(.nothing)
                }
                return .success(.ticket(ticket, session))
            }
        } catch {
            return .failure(error)
        }
    }
}
