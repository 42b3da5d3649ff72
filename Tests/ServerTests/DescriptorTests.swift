import Testing

@testable import CountersignServer

/// Descriptors are divided so that clients cannot take those of the backend, the store and the log.
@Suite struct DescriptorTests {
    @Test(arguments: [
        // available, connections, upstreams, workers, and what is left for clients
        (20_000, 10_000, 1_024, 2, 10_000), (1_048_576, 10_000, 10_000, 16, 10_000),
        (4_096, 10_000, 1_024, 2, 2_932), (256, 10_000, 1_024, 2, 80), (256, 10_000, 0, 2, 160),
        (256, 20, 1_024, 2, 20), (64, 10_000, 1_024, 2, 1), (0, 1, 0, 256, 1),
    ])
    func plans(available: Int, connections: Int, upstreams: Int, workers: Int, expected: Int) {
        let plan = FileDescriptorBudget(
            available: available, connections: connections, upstreams: upstreams, workers: workers)
        #expect(plan.connections == expected)
        #expect((plan.warning == nil) == (expected == connections))
    }
}
