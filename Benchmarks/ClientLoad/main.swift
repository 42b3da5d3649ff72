import CountersignTransport
import CountersignTrust
import Glibc

func used() -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6
        + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
}
let arguments = CommandLine.arguments
let port = UInt16(arguments[2])!
let security: Origin.Security = arguments[1] == "https" ? .tls : .plaintext
let requests = Int(arguments[3])!
let places = Int(arguments[4])!
var options = TransportOptions()
options.concurrentRequests = places
let transport = try HTTPTransport(trust: Trust([.host("localhost", .acceptsAnyServerAndSoAnyAttacker)], others: .refused), options: options)
let origin = Origin(security, try Host("localhost"), port: port)
func run(_ requests: Int) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        for place in 0..<places {
            group.addTask {
                for _ in stride(from: place, to: requests, by: places) {
                    let response = try await transport.send(OutgoingRequest("GET", origin, "/bench"))
                    _ = try await response.body.collect(upTo: 1 << 20)
                    guard response.status == 200 else { throw TransportError(.machine("\(response.status)"), .brokenOff) }
                }
            }
        }
        try await group.waitForAll()
    }
}
try await run(200)
let before = used()
try await run(requests)
print((used() - before) / Double(requests))
