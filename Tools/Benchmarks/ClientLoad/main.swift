// Measures the processor time of a request made with the SDK, which Tools/Benchmarks/client.py compares with
// libcurl alone. `client-load data URL REQUESTS PLACES`, `client-load carry URL REQUESTS PLACES` (the
// transport without the client), and `client-load sign URL REQUESTS 1`. Prints microseconds of processor time
// per request, over all threads.
import Countersign
import Glibc

struct Load {
    let url: String
    let requests: Int
    let places: Int

    init?(_ arguments: [String]) {
        guard arguments.count == 5, let requests = Int(arguments[3]), let places = Int(arguments[4]) else {
            return nil
        }
        (url, self.requests, self.places) = (arguments[2], requests, places)
    }

    /// The server is nginx on loopback. Its certificate is not part of the measurement, and it refuses no
    /// request.
    func client() throws -> CountersignClient {
        var transport = TransportOptions()
        transport.concurrentRequests = places
        var options = CountersignOptions()
        options.transport = .standard(transport)
        options.remembers = .nothing
        options.missingAuthorityKey = .leavesRefusalsUnverified
        if url.hasPrefix("http://") { options.encryption = .noneSoThatAnybodyReadsAndChangesEverything }
        let key = try ReleaseKey(id: "r_bench", secret: String(repeating: "A", count: 43))
        return try CountersignClient(
            release: key, baseURL: url, vault: .folder(".build/bench/vault"), trust: trust, options: options)
    }

    func carrier() throws -> HTTPTransport {
        var options = TransportOptions()
        options.concurrentRequests = places
        return try HTTPTransport(trust: trust, options: options)
    }

    private var trust: Trust {
        get throws { Trust([try .host("localhost", .acceptsAnyServerAndSoAnyAttacker)], others: .refused) }
    }

    /// Runs one task for each place; each sends its next request once the previous one is answered.
    func run(_ count: Int, _ ask: @escaping @Sendable () async throws -> Int) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for place in 0..<places {
                group.addTask {
                    for _ in stride(from: place, to: count, by: places) {
                        guard try await ask() == 200 else { throw Refused() }
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    struct Refused: Error {}
}

/// Microseconds of processor time so far.
func used() -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    func microseconds(_ time: timeval) -> Double { Double(time.tv_sec) * 1e6 + Double(time.tv_usec) }
    return microseconds(usage.ru_utime) + microseconds(usage.ru_stime)
}

func question(_ kind: String, _ load: Load) throws -> (@Sendable () async throws -> Int)? {
    var request = APIRequest("/bench")
    request.caller = .app
    let asked = request
    switch kind {
    case "data":
        let client = try load.client()
        return { try await client.data(for: asked).1.status }
    case "sign":
        let client = try load.client()
        return { try await client.signed(asked).fields.isEmpty ? 0 : 200 }
    case "carry":
        let carrier = try load.carrier()
        let parts = load.url.split(separator: ":")
        guard parts.count == 3, let port = UInt16(parts[2]) else { return nil }
        let origin = Origin(
            parts[0] == "https" ? .tls : .plaintext, host: try Trust.Host("localhost"), port: port)
        return {
            let answer = try await carrier.send(OutgoingRequest("GET", origin: origin, target: "/bench"))
            _ = try await answer.body.collect(upTo: 1 << 20)
            return answer.status
        }
    default: return nil
    }
}

guard let load = Load(CommandLine.arguments), let ask = try question(CommandLine.arguments[1], load) else {
    print("client-load: expected data, carry or sign, http[s]://localhost:PORT, requests and places")
    exit(2)
}

/// Runs the load beside the main thread, prints the result and ends the process.
func begin(_ load: Load, ask: @escaping @Sendable () async throws -> Int) {
    Task.detached {
        do {
            try await load.run(500, ask)
            let before = used()
            try await load.run(load.requests, ask)
            print((used() - before) / Double(load.requests))
        } catch {
            print("client-load: \(error)")
            _exit(1)
        }
        fflush(nil)
        // The transport's thread may still be closing connections, and must not meet libraries that are being
        // taken down.
        _exit(0)
    }
}

begin(load, ask: ask)
// An asynchronous main would end the main thread, and callgrind with it.
while true { pause() }
