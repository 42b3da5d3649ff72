import CountersignWire
import Testing

@testable import CountersignServer

/// The store makes the process not ready after two bad looks in a row, and is written to only once the writer
/// has failed.
@Suite struct StoreReadinessTests {
    private let fault = Fault(.failed, "the disk failed")

    @Test func oneStrayFailureDoesNotFlipIt() {
        let readiness = Readiness()
        let store = StoreReadiness(readiness)
        for _ in 0..<5 {
            store.turn(reading: fault) {}
            #expect(readiness.reasons.isEmpty)
            store.turn(reading: nil) {}
            #expect(readiness.reasons.isEmpty)
        }
        store.turn(reading: fault) {}
        store.turn(reading: fault) {}
        #expect(readiness.reasons == [.init(cause: .store, detail: "the disk failed")])
        store.turn(reading: nil) {}
        #expect(readiness.reasons.isEmpty)
    }

    @Test func writesAreTriedOnlyAfterTheWriterHasFailed() {
        let readiness = Readiness()
        let store = StoreReadiness(readiness)
        var trials = 0
        store.turn(reading: nil) { trials += 1 }
        #expect(trials == 0)
        store.writerDidFail()
        for _ in 0..<2 {
            store.turn(reading: nil) { () throws(Fault) in
                trials += 1
                throw fault
            }
        }
        #expect(trials == 2 && readiness.reasons.map(\.cause) == [.store])
        // The first trial that succeeds is the last one.
        store.turn(reading: nil) { trials += 1 }
        store.turn(reading: nil) { trials += 1 }
        #expect(trials == 3 && readiness.reasons.isEmpty)
    }
}
