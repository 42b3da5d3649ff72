import CountersignTransport
import CountersignTrust
import CountersignWire

/// One request with the transport: to which server, whom to trust, through what proxy. Prints the outcome as a
/// line of JSON.
enum TransportPeer {
    static func run(_ options: PeerOptions) async throws {
        Line.out(try await outcome(options).text)
    }

    private static func outcome(_ options: PeerOptions) async throws -> JSONValue {
        let host = try Trust.Host(options["host"])
        var settings = TransportOptions()
        settings.addresses[host] = try Trust.Host("127.0.0.1")
        settings.authorities = .instead(try Trust.Certificate.all(inFolder: options["authorities"]))
        if options.port("proxy") > 0 {
            settings.proxy = .tunnel(try Trust.Host("127.0.0.1"), port: options.port("proxy"))
        }
        let pins = options.all("pin")
        let policy: Trust.Policy =
            pins.isEmpty ? .system : try .pins([pins[0]], backups: Array(pins.dropFirst()))
        let trust = Trust([Trust.Rule(try Trust.HostPattern(options["host"]), policy)], others: .refused)
        let transport = try HTTPTransport(trust: trust, options: settings)
        let request = OutgoingRequest(
            "GET", origin: Origin(.tls, host: host, port: options.port("port")), target: options["target"])
        do {
            let response = try await transport.send(request)
            let body = try await response.body.collect(upTo: 1 << 20)
            return [
                "status": .integer(Int64(response.status)),
                "body": .string(String(decoding: body, as: UTF8.self)),
            ]
        } catch {
            var reasons: [JSONValue] = []
            var served: [JSONValue] = []
            if case .untrusted(let verdict) = error.cause {
                reasons = verdict.reasons.map { .string("\($0)") }
                served = verdict.served.map { .string("\($0)") }
            }
            return [
                "error": .string("\(error)"), "fate": .string("\(error.fate)"), "reasons": .array(reasons),
                "served": .array(served),
            ]
        }
    }
}
