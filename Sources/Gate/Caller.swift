import CountersignSchemes
import CountersignWire

/// A request that was judged good: whose it is, and what its signature vouches for.
package struct Caller: Sendable {
    package let release: ReleaseKey
    /// Whose session it is; nil for callers who are no more than a release.
    package internal(set) var session: Session?
    /// What is to be told to it of its version; nil for nothing.
    package internal(set) var update: UpdateNotice?
    /// Which of the release's keys the signature held under.
    package let edition: ReleaseKey.Edition
    package var scheme: SchemeName { release.scheme }
    /// The fields that may be forwarded on the strength of the signature.
    package let coveredFields: FieldSet
    /// Whole Unix seconds; nil where the scheme does not sign a time.
    package let created: Int64?
    /// What a body that streams must turn out to be. A body that was held has been checked.
    package let body: BodyExpectation
    /// What is left out of the request for the sake of the token in it; nil for callers whose proof is a
    /// signature.
    package let withheld: WithheldToken?

    /// What the backend, the log and the assertion are told of how it proved itself.
    package var schemeName: String { withheld?.ticket == nil ? scheme.rawValue : Caller.ticketScheme }
    package static let ticketScheme = "upload-ticket"

    init(_ proof: consuming CompleteProof) {
        let fresh = proof.fresh
        release = fresh.release
        session = fresh.session
        edition = fresh.edition
        coveredFields = fresh.coveredFields
        created = fresh.created
        body = fresh.body
        withheld = nil
    }

    /// Of a token alone nothing of the request is vouched for, so all of it goes on as it came.
    init(_ proof: consuming TokenProof) {
        release = proof.release
        session = proof.session
        edition = .current
        coveredFields = .everything
        created = nil
        body = .anything
        withheld = proof.withheld
    }

    /// A ticket vouches for the method, the target, the body and at most its type.
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
