import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire
import ScriptedClock
import Testing

/// Upload tickets are claimed once, within their bounds, and while their session lives.
extension StoreContract {
    private func ticket(
        _ number: UInt8, of session: StoredSession, expires: Int64 = 2_000, type: String? = "image/jpeg"
    ) throws -> UploadTicketRecord {
        let upload = UploadDescription(
            method: Array("PUT".utf8), authority: Array("shop.example".utf8), target: [0x2F, 0xFF, 0x3F],
            contentType: type.map { Array($0.utf8) }, length: 1 << 40,
            sha256: [UInt8](repeating: number, count: 32))
        return UploadTicketRecord(
            id: try #require(UploadTicketID([UInt8](repeating: number, count: 16))), session: session.id,
            account: session.account, release: try #require(KeyID("r_1")), upload: upload, created: 1_000,
            expires: expires)
    }

    package func uploadTickets() throws {
        let account = try added(accountDraft("uploads"))
        let other = try Self.session(801, of: account)
        let session = try Self.session(802, of: account)
        #expect(try make().uploadTicket(ticket(1, of: session).id) == nil)
        guard case .yes = try open(session, .unlimited), case .yes = try open(other, .unlimited) else {
            throw OperationalError(.failed, message: "not opened")
        }
        let revision = try make().revision()
        let bounds = UploadTicketBounds(ofSession: 2)
        let first = try ticket(1, of: session)
        #expect(try make().add(first, within: bounds, at: 1_000) == .yes)
        #expect(try make().uploadTicket(first.id) == first)
        #expect(throws: OperationalError.self, "an id is one ticket's") {
            try make().add(first, within: bounds, at: 1_000)
        }
        let second = try ticket(2, of: session, expires: 1_500, type: nil)
        #expect(try make().add(second, within: bounds, at: 1_000) == .yes)
        #expect(try make().uploadTicket(second.id) == second)
        #expect(try make().add(ticket(3, of: session), within: bounds, at: 1_499) == .full)
        #expect(try make().add(ticket(3, of: session), within: bounds, at: 1_500) == .yes, "one ran out")
        #expect(try make().add(ticket(4, of: other), within: bounds, at: 1_000) == .yes, "another session's")
        #expect(
            try make().add(ticket(5, of: other), within: UploadTicketBounds(ofSession: 0), at: 1_000) == .full
        )
        try claims(first, second)
        try ends(of: other, ticket(4, of: other))
        try forgetting(session)
        #expect(try make().revision() == revision)
    }

    private func claims(_ first: UploadTicketRecord, _ second: UploadTicketRecord) throws {
        #expect(try make().claimUploadTicket(first.id, at: 1_100) == .yes(attempt: 1))
        #expect(try make().claimUploadTicket(first.id, at: 1_101) == .used(at: 1_100))
        #expect(try make().uploadTicket(first.id)?.claimed == 1_100)
        try make().abandonUploadTicket(first.id, attempt: 2)
        #expect(try make().claimUploadTicket(first.id, at: 1_102) == .used(at: 1_100), "another's claim")
        for attempt in 1..<UploadTicketRecord.mostAttempts {
            try make().abandonUploadTicket(first.id, attempt: attempt)
            #expect(try make().claimUploadTicket(first.id, at: 1_200) == .yes(attempt: attempt + 1))
            try make().abandonUploadTicket(first.id, attempt: attempt)
            #expect(
                try make().claimUploadTicket(first.id, at: 1_200) == .used(at: 1_200),
                "an earlier attempt's end")
        }
        try make().abandonUploadTicket(first.id, attempt: UploadTicketRecord.mostAttempts)
        #expect(try make().claimUploadTicket(first.id, at: 1_200) == .exhausted)
        #expect(try make().claimUploadTicket(second.id, at: 1_500) == .over, "it ran out")
        #expect(
            try make().claimUploadTicket(#require(UploadTicketID([UInt8](repeating: 99, count: 16))), at: 0)
                == .over)
        #expect(UploadTicketID([1]) == nil)
    }

    private func ends(of session: StoredSession, _ ticket: UploadTicketRecord) throws {
        #expect(
            try make().end(.one(session.id), with: SessionTermination(.signedOut, at: 1_200), recording: nil)
                == [
                    session.id
                ])
        #expect(try make().claimUploadTicket(ticket.id, at: 1_201) == .over)
        #expect(
            try make().add(self.ticket(6, of: session), within: .init(ofSession: 9), at: 1_201)
                == .sessionEnded)
        #expect(try make().uploadTicket(ticket.id) != nil)
        #expect(try make().forgetSessions(endedBefore: 1_201, limit: 1_000).contains(session.id))
        #expect(try make().uploadTicket(ticket.id) == nil, "nothing outlives its session")
    }

    private func forgetting(_ session: StoredSession) throws {
        let bounds = UploadTicketBounds(ofSession: 1_000)
        #expect(try make().forgetUploadTickets(expiredBefore: 1_501, limit: 10) == 1)
        #expect(try make().forgetUploadTickets(expiredBefore: 1_501, limit: 10) == 0)
        // Used ones are kept, so that a second use is told from one that is unknown, and not without end.
        for number in 0..<UploadTicketBounds.mostUsed + 2 {
            var ticket = try ticket(0, of: session, expires: 9_000)
            let id = [UInt8](repeating: 0xEE, count: 14) + [UInt8(number >> 8), UInt8(number & 0xFF)]
            ticket.id = try #require(UploadTicketID(id))
            #expect(try make().add(ticket, within: bounds, at: 3_000) == .yes)
            #expect(try make().claimUploadTicket(ticket.id, at: Int64(3_000 + number)) == .yes(attempt: 1))
        }
        #expect(try make().add(ticket(7, of: session, expires: 9_000), within: bounds, at: 3_000) == .yes)
        #expect(
            try make().uploadTicket(#require(UploadTicketID([UInt8](repeating: 0xEE, count: 14) + [0, 0])))
                == nil)
        #expect(
            try make().uploadTicket(#require(UploadTicketID([UInt8](repeating: 0xEE, count: 14) + [0, 9])))
                != nil)
    }
}
