import CountersignGate
import CountersignWire

/// Upload tickets, used and unused. A ticket is claimed once; of several that race, one comes first.
package protocol UploadTicketStore: Sendable {
    /// Adds a ticket to a session that lives, where there is room for it. Forgets the oldest used tickets
    /// of the account beyond ``UploadTicketBounds/mostUsed``. `now` is in whole Unix seconds.
    func add(
        _ ticket: UploadTicket, within bounds: UploadTicketBounds, at now: Int64
    ) throws(Fault) -> UploadTicketAdded

    func uploadTicket(_ id: UploadTicketID) throws(Fault) -> UploadTicket?

    /// Marks a ticket as used, durably, where it is not, has not run out, was not tried too often, and its
    /// session lives.
    func claimUploadTicket(_ id: UploadTicketID, at now: Int64) throws(Fault) -> UploadTicketClaim

    /// Undoes that claim: the backend did not get the whole upload. Nothing where the ticket was claimed
    /// again or is gone.
    func abandonUploadTicket(_ id: UploadTicketID, attempt: Int) throws(Fault)

    /// Forgets tickets that ran out by that time, used or not, at most so many; answers how many.
    func forgetUploadTickets(expiredBefore time: Int64, limit: Int) throws(Fault) -> Int
}

/// How many tickets may be kept.
package struct UploadTicketBounds: Sendable, Equatable {
    /// Used ones of an account, so that a second use is told from one that is unknown.
    package static let mostUsed = 256
    /// How many sessions of an account may each have as many as they may.
    private static let fullSessions = 4

    /// Unused ones of a session.
    package let ofSession: Int
    /// Unused ones of an account.
    package var ofAccount: Int { ofSession * UploadTicketBounds.fullSessions }

    package init(ofSession: Int) { self.ofSession = ofSession }
}

package enum UploadTicketAdded: Sendable, Equatable {
    case yes
    /// The session or its account has as many as it may.
    case full
    /// The session is over.
    case sessionEnded
}

package enum UploadTicketClaim: Sendable, Equatable {
    /// It is the caller's to use; `attempt` names this claim.
    case yes(attempt: Int)
    /// It was claimed at that time, whole Unix seconds.
    case used(at: Int64)
    /// It was tried too often.
    case worn
    /// It is gone, has run out, or its session is over.
    case over
}
