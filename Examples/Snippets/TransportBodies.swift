// Request bodies, and custom transports.
import CountersignTransport
import CountersignTrust

/// Sends each kind of body: the type states whether it can be sent again.
func upload(_ lines: AsyncStream<[UInt8]>, _ transport: any RequestTransport, to origin: Origin) async throws
{
    var request = OutgoingRequest(
        "PUT", origin: origin, target: "/files/1", body: .bytes(Array("short".utf8)))
    _ = try await transport.send(request)

    let once = OnceBody(.unknown, pieces: lines)
    request.body = .once(once)
    _ = try await transport.send(request) { far in print("\(far.sent) bytes sent") }
    print(once.isUsedUp)

    request.body = RequestBody.replayable(ReplayableBody(BodyLength.bytes(3)) { AsyncStream { $0.finish() } })
    request.body = .none
    request.method = "HEAD"
    request.target = Array("/files/2".utf8)
    request.fields = [HeaderField("Accept", bytes: Array("*/*".utf8))]
    print(request.origin, request.authority, request.fields.map(\.value))
}

/// The progress of an upload, in percent.
func percent(_ far: TransferProgress) -> Int64? {
    switch far.toSend {
    case .bytes(let all): all == 0 ? nil : far.sent * 100 / all
    case .unknown: nil
    }
}

let beginning = TransferProgress()
let nothingKnown = TransferProgress.Total.unknown

/// A custom transport: another HTTP stack under the same client.
struct OwnCarrier: RequestTransport {
    let stack: any OwnStack

    func send(
        _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportError) -> IncomingResponse {
        guard let (status, source) = await stack.perform(request) else {
            throw TransportError(.offline, fate: .notSent)
        }
        return IncomingResponse(status: status, fields: [], body: ResponseBody(source))
    }

    func replaceTrust(by trust: Trust) { stack.cutConnections(andTrust: trust) }
}

protocol OwnStack: Sendable {
    func perform(_ request: OutgoingRequest) async -> (Int, OwnSource)?
    func cutConnections(andTrust trust: Trust)
}

/// The source of the pieces of its response bodies.
final class OwnSource: BodySource {
    func next() async throws(TransportError) -> [UInt8]? { nil }
    func cancel() {}
}

/// Replaces the trust and closes the connections made under the old one.
func replace(_ transport: HTTPTransport, by trust: Trust) { transport.replaceTrust(by: trust) }

/// A clock that is ahead of the system's.
func laterBy(_ seconds: Int64) -> DeviceClock {
    let system = DeviceClock.system
    return DeviceClock(wall: { system.wall() + seconds }, monotonic: { system.monotonic() })
}

/// Phases and fates, for a log.
func name(_ phase: TransportError.Phase, _ fate: TransportError.Fate) -> String { "\(phase), \(fate)" }
