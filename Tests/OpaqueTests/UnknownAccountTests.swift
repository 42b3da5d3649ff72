import CountersignSeal
import Testing

@testable import CountersignOpaque

/// A login of an unknown account reveals no more than a login with a wrong password. Source: RFC 9807 §10.9.
@Suite struct UnknownAccountTests {
    @Test func noPasswordOpensTheFakeRecord() throws {
        for count in 0..<20 {
            let ceremony = try Ceremony(password: SystemRandom().bytes(count))
            #expect(try ceremony.refusal(ceremony.keys.fakeRecord) == .wrongPassword)
        }
    }

    @Test func itIsStoredAndReadAsAnyOther() throws {
        let keys = try ServerKeys.random()
        let bytes = keys.fakeRecord.bytes
        #expect(bytes.count == MessageKind.registrationRecord.count)
        #expect(try RegistrationRecord(bytes).bytes.exposed == bytes.exposed)
        // It is the server's for ever, and no other server's.
        let again = try ServerKeys(keys.bytes)
        #expect(again?.fakeRecord.bytes.exposed == bytes.exposed)
        #expect(try ServerKeys.random().fakeRecord.bytes.exposed != bytes.exposed)
    }

    /// What stays the same from one try to the next stays the same for both, and what changes changes for
    /// both.
    @Test func theSamePartsOfTheAnswerRepeat() throws {
        let ceremony = try Ceremony(password: Array("guess".utf8))
        let ke1 = try ClientLogin(ceremony.password).ke1
        let known = try ceremony.register().record
        for record in [known, ceremony.keys.fakeRecord] {
            let first = try answer(ke1, record, Array("alice".utf8), ceremony)
            let second = try answer(ke1, record, Array("alice".utf8), ceremony)
            let other = try answer(ke1, record, Array("bob".utf8), ceremony)
            #expect(first.count == MessageKind.ke2.count && second.count == first.count)
            #expect(first[..<32] == second[..<32])
            #expect(first[..<32] != other[..<32])
            // Nothing of the rest shows that it is the same record: no two bytes in a row.
            for start in stride(from: 32, to: 320, by: 8) {
                #expect(first[start..<start + 8] != second[start..<start + 8])
            }
        }
    }

    private func answer(
        _ ke1: KE1, _ record: RegistrationRecord, _ credential: [UInt8], _ ceremony: Ceremony
    ) throws -> [UInt8] {
        try ServerLogin(
            ke1, record: record, credential: credential, as: ceremony.parties, context: ceremony.context,
            keys: ceremony.keys
        ).ke2.bytes
    }
}
