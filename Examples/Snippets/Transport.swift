// Sends requests without a client, to other servers under the same trust.
import CountersignTransport
import CountersignTrust

func fetch(_ trust: Trust) async throws -> [UInt8] {
    let transport: HTTPTransport = try PlatformTransport(trust: trust)
    let origin = Origin(.tls, host: try Trust.Host("status.example.net"))
    let request = OutgoingRequest(
        "GET", origin: origin, target: "/now?part=all",
        fields: [HeaderField("Accept", value: "application/json")])
    let response = try await transport.send(request)
    guard response.status == 200 else { return [] }
    print(response.value(of: "Content-Type") ?? [], response.fields.map(\.name))
    return try await response.body.collect(upTo: 1 << 20)
}

/// Receives the body in pieces and reports progress.
func download(_ transport: HTTPTransport, _ request: OutgoingRequest, into sink: (([UInt8]) throws -> Void))
    async throws
{
    let response = try await transport.send(request) { far in
        guard case .bytes(let all) = far.toReceive else { return }
        print("\(far.received) of \(all)")
    }
    for try await piece in response.body { try sink(piece) }
}

/// Whether the request may be sent again: the error states what became of it.
func mayBeSentAgain(_ error: TransportError) -> String {
    switch error.fate {
    case .notSent: "yes: nothing of it left (\(error.cause))"
    case .outcomeUnknown: "only if executing it twice does no harm"
    case .brokenOff: "it was received"
    }
}

func sentence(_ cause: TransportError.Cause) -> String {
    switch cause {
    case .offline: "No network"
    case .hostNotFound, .connectionRefused: "The server cannot be reached"
    case .timedOut(.connecting), .timedOut(.idle), .timedOut(.total): "It took too long"
    case .untrusted(let verdict): "The server is not trusted: \(verdict)"
    case .tls(let detail), .connectionLost(let detail), .malformedAnswer(let detail): detail
    case .answerTooLarge(let limit): "More than \(limit) bytes"
    case .cancelled: "Cancelled"
    case .trustReplaced: "The pins changed"
    case .body(let detail), .malformedRequest(let detail), .machine(let detail): detail
    case .bodyUsedUp: "The stream is used up"
    case .keyExpired: "Look whether it was done before you try again"
    }
}

/// Everything that can be set.
func options() throws -> TransportOptions {
    var options = TransportOptions()
    options.concurrentRequests = 4
    options.connectTimeout = .within(.seconds(5))
    options.idleTimeout = TransportOptions.Limit.within(.seconds(30))
    options.totalTimeout = .unlimited
    options.authorities = TransportOptions.Authorities.machine
    options.proxy = TransportOptions.Proxy.none
    options.addresses = [try Trust.Host("api.example.com"): try Trust.Host("192.0.2.1")]
    options.observe = { verdict in print(verdict) }
    options.clock = .system
    options.reachability = .system
    return options
}

/// Through a company's proxy, and under its own authority.
func company(_ authority: Trust.Certificate) throws -> TransportOptions {
    var options = TransportOptions()
    options.proxy = .tunnel(try Trust.Host("proxy.example.com"), port: 3128)
    options.authorities = .instead([authority])
    options.reachability = NetworkReachability { .online }
    if options.reachability.state() == NetworkReachability.State.offline { print("offline") }
    return options
}

/// Where a request goes.
func describe(_ origin: Origin) -> String {
    switch origin.security {
    case .tls: "\(origin) on port \(origin.port), for \(origin.host)"
    case .plaintext: "\(origin.authority), in the clear"
    }
}
