import CountersignWire
import Testing

@testable import CountersignServer

/// Two failed checks of the store in a row make the process not ready; the check writes only after the writer
/// has failed.
@Suite struct StoreReadinessTests {
    private let fault = OperationalError(.failed, message: "the disk failed")

    @Test func oneStrayFailureDoesNotFlipIt() {
        let readiness = Readiness()
        let store = StoreReadiness(readiness)
        for _ in 0..<5 {
            store.update(readFailure: fault) {}
            #expect(readiness.reasons.isEmpty)
            #expect(readiness.pendingReasons == [.init(cause: .store, detail: "the disk failed")])
            store.update(readFailure: nil) {}
            #expect(readiness.reasons.isEmpty)
        }
        store.update(readFailure: fault) {}
        store.update(readFailure: fault) {}
        #expect(readiness.reasons == [.init(cause: .store, detail: "the disk failed")])
        store.update(readFailure: nil) {}
        #expect(readiness.reasons.isEmpty)
    }

    @Test func writesAreTriedOnlyAfterTheWriterHasFailed() {
        let readiness = Readiness()
        let store = StoreReadiness(readiness)
        var trials = 0
        store.update(readFailure: nil) { trials += 1 }
        #expect(trials == 0)
        store.writerDidFail()
        #expect(readiness.reasons.isEmpty && readiness.pendingReasons.map(\.cause) == [.store])
        for _ in 0..<2 {
            store.update(readFailure: nil) { () throws(OperationalError) in
                trials += 1
                throw fault
            }
        }
        #expect(trials == 2 && readiness.reasons.map(\.cause) == [.store])
        // What is known is not pending any longer.
        #expect(readiness.pendingReasons.isEmpty)
        // The first trial that succeeds is the last one.
        store.update(readFailure: nil) { trials += 1 }
        store.update(readFailure: nil) { trials += 1 }
        #expect(trials == 3 && readiness.reasons.isEmpty && readiness.pendingReasons.isEmpty)
    }
}
