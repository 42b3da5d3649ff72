import CountersignTestKit
import CountersignTransport
import Foundation
import Testing
import Waiting

@Suite struct ManualClockTests {
    @Test func timeGoesByOnBothClocksAndIsSetOnOne() {
        let clock = ManualClock(wall: 1000)
        let (wall, monotonic) = (clock.deviceClock.wall, clock.deviceClock.monotonic)
        clock.advance(by: .milliseconds(1500))
        #expect(wall() == 1001 && monotonic() == 1_500_000_000)
        clock.setWall(500)
        #expect(wall() == 500 && monotonic() == 1_500_000_000)
        clock.advance(by: .milliseconds(999))
        #expect(wall() == 500 && monotonic() == 2_499_000_000)
        clock.advance(by: .milliseconds(1))
        #expect(wall() == 501)
    }

    @Test func whoSleepsIsWokenWhenItIsTime() async throws {
        let clock = ManualClock()
        async let long: Void = clock.sleep(for: .seconds(10))
        async let short: Void = clock.sleep(for: .seconds(5))
        await until("two sleepers") { clock.sleepers == 2 }
        clock.advance(by: .seconds(5))
        try await short
        #expect(clock.sleepers == 1)
        clock.advance(by: .seconds(5))
        try await long
    }

    @Test func aCancelledSleepEnds() async {
        let clock = ManualClock()
        let task = Task { try await clock.sleep(for: .seconds(10)) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(clock.sleepers == 0)
    }
}

@Suite struct SignatureVectorTests {
    private struct File: Decodable {
        struct Case: Decodable {
            let name, method, transport, authority, target, body, keyId, secret, stringToSign: String
            let fields: [[String]]
            let created: Int64
        }
        let cases: [Case]
    }

    /// What the kit carries is what Vectors/ holds, to the byte.
    @Test func theKitsVectorsAreThoseOfTheFile() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        let data = try Data(contentsOf: root.appendingPathComponent("Vectors/message-signatures/cases.json"))
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let cases = try decoder.decode(File.self, from: data).cases.filter { !$0.name.hasPrefix("random ") }
        #expect(cases.count >= 20 && SignatureVector.all.count == cases.count)
        for (vector, expected) in zip(SignatureVector.all, cases) {
            let fields = vector.fields.map { [$0.name, String(decoding: $0.value, as: UTF8.self)] }
            let secret = vector.secret.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
                .joined()
            #expect(vector.name == expected.name && vector.method == expected.method)
            #expect(vector.scheme == expected.transport && vector.authority == expected.authority)
            #expect(vector.target == expected.target && fields == expected.fields)
            #expect(vector.body == Array(expected.body.utf8) && vector.keyID == expected.keyId)
            #expect(secret == expected.secret && vector.created == expected.created)
            #expect(vector.stringToSign == expected.stringToSign)
        }
    }
}
