/// A server of which our gateway is one part: what happens to it happens to the gateway, unless it says otherwise.
protocol WrappedGateway: StagedServer {
    var gateway: GatewayServer { get }
}

extension WrappedGateway {
    package func stolenDatabase() async throws -> [String] { try await gateway.stolenDatabase() }

    package func restart() async throws { try await gateway.restart() }

    package func restartWithoutReplayFile() async throws -> Bool { try await gateway.restartWithoutReplayFile() }

    package func restartWithReplayFileFound() async throws { try await gateway.restartWithReplayFileFound() }

    package func secondNode() async throws -> SecondNode { try await gateway.secondNode() }

    @discardableResult
    package func operate(_ words: [String], typing input: String) async throws(StageFault) -> [UInt8] {
        try await gateway.operate(words, typing: input)
    }

    package func retire(_ key: AppKey) async throws -> Retiring { try await gateway.retire(key) }

    package func bringBack(_ key: AppKey) async throws { try await gateway.bringBack(key) }
}
