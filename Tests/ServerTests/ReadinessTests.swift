import CountersignHTTP
import CountersignMemory
import Testing

@testable import CountersignServer

/// `/ready` lists each cause once, in a fixed order, and draining cannot be taken back.
@Suite struct ReadinessTests {
    private func text(_ readiness: Readiness) -> String {
        "\(readiness.answer.status) " + String(decoding: readiness.answer.body, as: UTF8.self)
    }

    @Test func isReadyUntilACauseIsReported() {
        let readiness = Readiness()
        #expect(text(readiness) == "200 {\"ready\":true,\"reasons\":[]}\n")
        readiness.set(.upstream, detail: "refused")
        readiness.set(.store, detail: "no disk")
        readiness.set(.store, detail: "the disk is full")
        #expect(
            text(readiness)
                == "503 {\"ready\":false,\"reasons\":[{\"cause\":\"store\",\"detail\":\"the disk is full\"},"
                + "{\"cause\":\"upstream\",\"detail\":\"refused\"}]}\n")
        readiness.clear(.store)
        readiness.clear(.upstream)
        #expect(readiness.answer.status == 200)
    }

    @Test func asksAWatchedCauseEachTime() {
        let readiness = Readiness()
        let failure = Locked<String?>("Redis is away")
        readiness.watch(.replay) { failure.with { $0 } }
        #expect(readiness.reasons == [.init(cause: .replay, detail: "Redis is away")])
        failure.with { $0 = nil }
        #expect(readiness.answer.status == 200)
    }

    @Test func aWarningIsShownAndKeepsNothingFromBeingReady() {
        let readiness = Readiness()
        let hang = Locked<String?>(nil)
        readiness.watchPending(.administration) { hang.with { $0 } }
        #expect(text(readiness) == "200 {\"ready\":true,\"reasons\":[]}\n")
        hang.with { $0 = "a command has run for 31 s" }
        #expect(
            text(readiness)
                == "200 {\"ready\":true,\"reasons\":[],\"warnings\":[{\"cause\":\"administration\","
                + "\"detail\":\"a command has run for 31 s\"}]}\n")
        #expect(readiness.reasons.isEmpty)
    }

    @Test func warnsOfWhatKeepsItFromNothing() {
        let readiness = Readiness()
        let floor = Locked<String?>("signatures are refused")
        readiness.watchPending(.replay) { floor.with { $0 } }
        readiness.setPending(.settings, detail: "another value")
        #expect(
            text(readiness)
                == "200 {\"ready\":true,\"reasons\":[],\"warnings\":["
                + "{\"cause\":\"replay\",\"detail\":\"signatures are refused\"},"
                + "{\"cause\":\"settings\",\"detail\":\"another value\"}]}\n")
        // What is a reason is no warning as well.
        readiness.set(.replay, detail: "Redis is away")
        #expect(readiness.pendingReasons.map(\.cause) == [.settings])
        readiness.clear(.replay)
        floor.with { $0 = nil }
        readiness.setPending(.settings, detail: nil)
        #expect(text(readiness) == "200 {\"ready\":true,\"reasons\":[]}\n")
    }

    @Test(
        "the warning of a floor", arguments: [(99, nil), (100, "1 s"), (160, "61 s")] as [(Int64, String?)])
    func floors(_ row: (floor: Int64, wait: String?)) {
        let warning = ReplayService.warning(ofFloor: row.floor, at: 100)
        #expect((warning == nil) == (row.wait == nil))
        if let wait = row.wait { #expect(warning?.contains("are refused, for \(wait) more") == true) }
    }

    @Test func staysNotReadyOnceItDrains() {
        let readiness = Readiness()
        readiness.beginDraining()
        readiness.clear(.draining)
        #expect(readiness.reasons.map(\.cause) == [.draining])
    }
}
