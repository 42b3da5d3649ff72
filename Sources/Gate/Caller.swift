import CountersignSchemes
import CountersignWire

/// The caller of an accepted request: its release, its session, and what its signature covers.
///
/// A class, so that later steps share it instead of copying its values.
///
/// Unchecked, because its values change without a lock: the gate sets them before it returns the caller,
/// and makes the object another request's caller (``renew(_:session:update:)``) only when nothing else
/// refers to it.
package final class Caller: @unchecked Sendable {
    /// What one request establishes, set as a whole, so that nothing of the request before is left.
    private struct Values {
        let release: AppRelease
        var session: Session?
        var update: UpdateNotice?
        var edition = AppRelease.Edition.current
        let coveredFields: FieldSet
        var created: Int64?
        let body: BodyExpectation
        var withheld: WithheldToken?
        var observed: Refusal.Code?
    }

    private var values: Values

    package var release: AppRelease { values.release }
    /// The caller's session; nil if the request proves only its release.
    package internal(set) var session: Session? {
        get { values.session }
        set { values.session = newValue }
    }
    /// The notice about its version to send with the response; nil for none.
    package internal(set) var update: UpdateNotice? {
        get { values.update }
        set { values.update = newValue }
    }
    /// Which of the release's keys verified the signature.
    package var edition: AppRelease.Edition { values.edition }
    package var scheme: SchemeName { release.scheme }
    /// The fields that the signature permits to be forwarded.
    package var coveredFields: FieldSet { values.coveredFields }
    /// Whole Unix seconds; nil where the scheme does not sign a time.
    package var created: Int64? { values.created }
    /// What a streamed body must match. A buffered body has been checked already.
    package var body: BodyExpectation { values.body }
    /// The parts of the request that are not forwarded because they contain a token; nil for callers whose
    /// proof is a signature.
    package var withheld: WithheldToken? { values.withheld }
    /// The refusal of a caller without the session or device signature that its route requires, if the route
    /// or app only observes. The proof of such a caller is valid.
    package internal(set) var observed: Refusal.Code? {
        get { values.observed }
        set { values.observed = newValue }
    }
    /// Whether the caller's proof is an upload ticket.
    package var bearsTicket: Bool { if let withheld, withheld.ticket != nil { true } else { false } }

    /// The name of the caller's proof, for the backend, the log and the assertion.
    package var schemeName: String { bearsTicket ? Caller.ticketScheme : scheme.rawValue }
    package static let ticketScheme = "upload-ticket"

    /// `session` is the proof's own, or the one whose token the request bears.
    init(_ proof: consuming CompleteProof, session: Session?, update: UpdateNotice?) {
        values = Caller.values(of: proof, session: session, update: update)
    }

    /// Makes it the caller of another request.
    func renew(_ proof: consuming CompleteProof, session: Session?, update: UpdateNotice?) {
        values = Caller.values(of: proof, session: session, update: update)
    }

    private static func values(
        of proof: borrowing CompleteProof, session: Session?, update: UpdateNotice?
    ) -> Values {
        Values(
            release: proof.fresh.release, session: session, update: update, edition: proof.fresh.edition,
            coveredFields: proof.fresh.claim.coveredFields, created: proof.fresh.created,
            body: proof.fresh.claim.body)
    }

    /// A token alone covers no part of the request, so every field may be forwarded as received.
    init(_ proof: consuming TokenProof) {
        values = Values(
            release: proof.release, session: proof.session, coveredFields: .everything, body: .anything,
            withheld: proof.withheld)
    }

    /// A ticket covers the method, the target, the body and, if it names one, the content type.
    init(_ proof: consuming UploadTicketProof) {
        values = Values(
            release: proof.release, session: proof.session, coveredFields: proof.coveredFields,
            body: proof.body, withheld: proof.withheld)
    }
}
