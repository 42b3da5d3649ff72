// One request with the transport, for tests in Tests/Interop: which server, whom to trust, through what
// proxy; prints what came of it as a line of JSON.
import CountersignTransport
import CountersignTrust
import CountersignWire
import Glibc

/// `--name value …`
struct Options {
    private var values: [String: [String]] = [:]

    init(_ arguments: [String]) {
        for index in stride(from: 0, to: arguments.count - 1, by: 2) {
            values[String(arguments[index].dropFirst(2)), default: []].append(arguments[index + 1])
        }
    }

    func all(_ name: String) -> [String] { values[name] ?? [] }
    func one(_ name: String) -> String { values[name]?.last ?? "" }
    func port(_ name: String) -> UInt16 { UInt16(one(name)) ?? 0 }
}

func run(_ options: Options) async throws -> JSONValue {
    let host = try Trust.Host(options.one("host"))
    var settings = TransportOptions()
    settings.addresses[host] = try Trust.Host("127.0.0.1")
    settings.authorities = .instead(try Trust.Certificate.all(inFolder: options.one("authorities")))
    if options.port("proxy") > 0 {
        settings.proxy = .tunnel(try Trust.Host("127.0.0.1"), port: options.port("proxy"))
    }
    let pins = options.all("pin")
    let policy: Trust.Policy = pins.isEmpty ? .system : try .pins([pins[0]], backups: Array(pins.dropFirst()))
    let trust = Trust([Trust.Rule(try Trust.HostPattern(options.one("host")), policy)], others: .refused)
    let transport = try HTTPTransport(trust: trust, options: settings)
    let request = OutgoingRequest(
        "GET", origin: Origin(.tls, host: host, port: options.port("port")), target: options.one("target"))
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

print(try await run(Options(Array(CommandLine.arguments.dropFirst()))).text)
