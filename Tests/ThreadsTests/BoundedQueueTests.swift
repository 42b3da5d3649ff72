import CountersignMemory
import Testing

@testable import CountersignThreads

/// The queue holds no more than its bound, gives each job out once, and refuses after its end.
@Suite struct BoundedQueueTests {
    @Test func jobsComeOutInTheirOrder() {
        let queue = BoundedQueue<Int>(bound: 5)
        for job in 1...5 { #expect(queue.add(job, ticket: JobTicket()) == .queued) }
        #expect(queue.take(most: 3) == [1, 2, 3])
        #expect(queue.take(most: 3) == [4, 5])
    }

    @Test func partiesTakeTurns() {
        let queue = BoundedQueue<String>(bound: 20)
        func add(_ job: String, for party: String?) {
            #expect(queue.add(job, ticket: JobTicket(), for: party) == .queued)
        }
        for number in 1...4 { add("a\(number)", for: "a") }
        #expect(queue.take() == ["a1"])
        for number in 1...2 { add("b\(number)", for: "b") }
        add("c1", for: "c")
        add("x", for: nil)
        #expect(queue.take(most: 5) == ["b1", "c1", "x", "a2", "b2"])
        // A party that comes later is not behind the rounds that others have waited for.
        add("d1", for: "d")
        #expect(queue.take(most: 5) == ["d1", "a3", "a4"])
    }

    @Test func aFullQueueRefuses() {
        let queue = BoundedQueue<Int>(bound: 1)
        #expect(queue.add(1, ticket: JobTicket()) == .queued)
        #expect(queue.add(2, ticket: JobTicket()) == .full(.init(waiting: 1, busy: 0)))
    }

    @Test func aFreeWorkerIsOneMorePlace() {
        let queue = BoundedQueue<Int>(bound: 0, workers: 1)
        #expect(queue.add(1, ticket: JobTicket()) == .queued)
        #expect(queue.take() == [1])
        #expect(queue.add(2, ticket: JobTicket()) == .full(.init(waiting: 0, busy: 1)))
        queue.didFinish()
        #expect(queue.add(3, ticket: JobTicket()) == .queued)
    }

    @Test func aTicketCancelsUntilItsJobIsTaken() {
        let queue = BoundedQueue<Int>(bound: 5)
        let (early, waiting, taken) = (JobTicket(), JobTicket(), JobTicket())
        #expect(queue.cancel(early) == nil)
        #expect(queue.add(1, ticket: early) == .cancelled)
        #expect(queue.add(2, ticket: taken) == .queued && queue.add(3, ticket: waiting) == .queued)
        #expect(queue.take() == [2])
        #expect(queue.cancel(taken) == nil)
        #expect(queue.cancel(waiting) == 3)
        #expect(queue.cancel(waiting) == nil)
        #expect(queue.load == .init(waiting: 0, busy: 1))
    }

    @Test func aClosedQueueIsEmptiedAndRefuses() {
        let drained = BoundedQueue<Int>(bound: 5)
        #expect(drained.add(1, ticket: JobTicket()) == .queued)
        drained.close()
        #expect(drained.add(2, ticket: JobTicket()) == .closed)
        #expect(drained.take() == [1] && drained.take() == [])
        let ticket = JobTicket()
        let removed = BoundedQueue<Int>(bound: 5)
        #expect(removed.add(1, ticket: ticket) == .queued)
        #expect(removed.closeAndRemoveAll() == [1])
        #expect(removed.cancel(ticket) == nil && removed.take() == [])
    }

    @Test func eachJobIsTakenByOneThread() throws {
        let queue = BoundedQueue<Int>(bound: 2_000)
        let taken = Locked<[Int]>([])
        let threads = try WorkerThreads(4, purpose: "to take jobs on") {
            while case let jobs = queue.take(most: 7), !jobs.isEmpty {
                taken.with { $0 += jobs }
                queue.didFinish()
            }
        }
        for job in 0..<2_000 { #expect(queue.add(job, ticket: JobTicket()) == .queued) }
        queue.close()
        threads.join()
        #expect(taken.with { $0.sorted() } == Array(0..<2_000))
        #expect(queue.load == .init(waiting: 0, busy: 0))
    }
}
