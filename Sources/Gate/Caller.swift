import CountersignSchemes
import CountersignWire

/// The caller of an accepted request: its release, its session, and what its signature covers.
///
/// A class, so that later steps share it instead of copying its values. Safe to share: the gate sets what the
/// steps after the admission add, and nothing changes it once the gate has returned it.
package final class Caller: @unchecked Sendable {
    package private(set) var release: AppRelease
    /// The caller's session; nil if the request proves only its release.
    package internal(set) var session: Session?
    /// The notice about its version to send with the response; nil for none.
    package internal(set) var update: UpdateNotice?
    /// Which of the release's keys verified the signature.
    package private(set) var edition: AppRelease.Edition
    package var scheme: SchemeName { release.scheme }
    /// The fields that the signature permits to be forwarded.
    package private(set) var coveredFields: FieldSet
    /// Whole Unix seconds; nil where the scheme does not sign a time.
    package private(set) var created: Int64?
    /// What a streamed body must match. A buffered body has been checked already.
    package private(set) var body: BodyExpectation
    /// The parts of the request that are not forwarded because they contain a token; nil for callers whose
    /// proof is a signature.
    package private(set) var withheld: WithheldToken?
    /// Whether the caller's proof is an upload ticket.
    package var bearsTicket: Bool { if let withheld, withheld.ticket != nil { true } else { false } }

    /// The name of the caller's proof, for the backend, the log and the assertion.
    package var schemeName: String { bearsTicket ? Caller.ticketScheme : scheme.rawValue }
    package static let ticketScheme = "upload-ticket"

    /// `session` is the proof's own, or the one whose token the request bears.
    init(_ proof: consuming CompleteProof, session: Session?, update: UpdateNotice?) {
        release = proof.fresh.release
        self.session = session
        self.update = update
        edition = proof.fresh.edition
        coveredFields = proof.fresh.claim.coveredFields
        created = proof.fresh.created
        body = proof.fresh.claim.body
        withheld = nil
    }

    /// Makes it the caller of another request.
    func renew(_ proof: consuming CompleteProof, session: Session?, update: UpdateNotice?) {
        release = proof.fresh.release
        self.session = session
        self.update = update
        edition = proof.fresh.edition
        coveredFields = proof.fresh.claim.coveredFields
        created = proof.fresh.created
        body = proof.fresh.claim.body
        if withheld != nil { withheld = nil }
    }

    /// A token alone covers no part of the request, so every field may be forwarded as received.
    init(_ proof: consuming TokenProof) {
        release = proof.release
        session = proof.session
        edition = .current
        coveredFields = .everything
        created = nil
        body = .anything
        withheld = proof.withheld
    }

    /// A ticket covers the method, the target, the body and, if it names one, the content type.
    init(_ proof: consuming UploadTicketProof) {
        release = proof.release
        session = proof.session
        edition = .current
        coveredFields = proof.coveredFields
        created = nil
        body = proof.body
        withheld = proof.withheld
    }
}
