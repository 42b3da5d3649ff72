import CountersignSQL
import CountersignWire
import Testing

@testable import CountersignAuthority

@Suite struct PinManifestsTests {
    private let folder = TemporaryFolder()

    private func made(_ apps: String...) throws -> Deployment {
        let made = try deployment(folder.data)
        for name in apps { _ = try made.addApp(AppName(argument: name), settings: [], at: 1) }
        return made
    }

    @Test func eachAppHasItsOwn() throws {
        let deployment = try made("a", "b")
        let (a, b) = (try AppName(argument: "a"), try AppName(argument: "b"))
        try deployment.publish(pinManifest: "one\n", version: 1, of: a, after: nil)
        try deployment.publish(pinManifest: "\"two\"", version: 1, of: b, after: nil)
        try deployment.publish(pinManifest: "three", version: 2, of: a, after: "one\n")
        let manifests = try deployment.pinManifests()
        #expect(manifests.text(of: a) == "three" && manifests.text(of: b) == "\"two\"")
        // The audit log has a record of each, with its version.
        let records = try deployment.auditRecords(last: 10).map { String(decoding: $0.record, as: UTF8.self) }
        #expect(
            records.count { $0.contains(#""action":"pins.publish","app":"a","details":{"version":"#) } == 2)
    }

    @Test func oneThatCameMeanwhileIsNotLost() throws {
        let deployment = try made("a")
        let app = try AppName(argument: "a")
        try deployment.publish(pinManifest: "first", version: 1, of: app, after: nil)
        for earlier in [nil, "another"] {
            let fault = #expect(throws: OperationalError.self) {
                try deployment.publish(pinManifest: "late", version: 2, of: app, after: earlier)
            }
            #expect(fault?.message.contains("meanwhile") == true)
        }
        #expect(try deployment.pinManifests().text(of: app) == "first")
        #expect(throws: OperationalError.self) {
            try deployment.publish(pinManifest: "x", version: 1, of: AppName(argument: "nobody"), after: nil)
        }
    }

    @Test("a value that nobody wrote", arguments: ["", "[]", #"{"a":1}"#, "{"])
    func altered(_ stored: String) throws {
        let deployment = try made("a")
        try deployment.store.set(.pinManifests, to: Array(stored.utf8))
        #expect(throws: OperationalError.self) { try deployment.pinManifests() }
    }
}
