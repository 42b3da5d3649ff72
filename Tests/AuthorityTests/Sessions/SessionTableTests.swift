import CountersignGate
import CountersignHandshake
import CountersignWire
import TestRounds
import Testing

@testable import CountersignAuthority

@Suite struct SessionTableTests {
    @Test("as a dictionary would have it, through many changes")
    func againstADictionary() throws {
        var generator = seededRandom()
        var table = SessionTable()
        var model: [SessionID: Int64] = [:]
        // Of some sessions, and not always of the same ones.
        var secrets: [SessionID: [UInt8]] = [:]
        let app = try #require(AppName("demo"))
        let platform = try #require(Platform("ios"))
        // Ids that differ in few bits, so that they collide.
        let ids = try (0..<700).map { number in try #require(SessionID(SessionTableTests.text(number))) }
        for step in 0..<Int64(rounds(200_000)) {
            let id = ids[Int.random(in: 0..<ids.count, using: &generator)]
            if Int.random(in: 0..<3, using: &generator) == 0 {
                table.remove(id)
                model[id] = nil
                secrets[id] = nil
            } else {
                let credentials = DeviceCredentials(
                    signingKey: [], agreementKey: [], epochBegan: step,
                    sealedRoot: [UInt8](repeating: 1, count: 73))
                var row = StoredSession(
                    id: id, account: step, app: app, platform: platform, deviceClass: .phone, deviceName: "x",
                    created: 1, credentials: .device(credentials))
                if step.isMultiple(of: 5) { row.end = .init(.revoked, at: step) }
                let secret: [UInt8]? =
                    step.isMultiple(of: 3) ? nil : [UInt8(step & 0xFF), UInt8(step >> 8 & 0xFF)]
                table.put(
                    SessionRecord(SessionOutline(row), appPlatform: 0), secret: secret.map(SessionSecret.init)
                )
                model[id] = step
                secrets[id] = secret
            }
            if step.isMultiple(of: 997) {
                #expect(table.count == model.count)
                #expect(table.endedCount == model.values.count { $0.isMultiple(of: 5) })
            }
            #expect(table.find(id)?.account == model[id])
            #expect(table.secret(of: id)?.bytes == secrets[id])
        }
        for id in ids {
            #expect(table.find(id)?.account == model[id])
            #expect(table.secret(of: id)?.bytes == secrets[id])
        }
    }

    /// An id of which only a few bits differ from the others'.
    private static func text(_ number: Int) -> String {
        var bytes = [UInt8](repeating: 0, count: SessionID.count)
        bytes[5] = UInt8(truncatingIfNeeded: number)
        bytes[4] = UInt8(truncatingIfNeeded: number >> 8)
        return Base64.encode(bytes.span, as: .url)
    }
}
