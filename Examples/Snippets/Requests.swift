// Sends requests to a backend.
import Countersign
import Foundation

struct Note: Codable {
    var title: String
}

/// Encodes and decodes values.
func notes(_ client: CountersignClient) async throws -> [Note] {
    let note = try APIRequest.json(.post, "/notes", Note(title: "Milk"))
    let kept: Note = try await client.value(for: note)
    print(kept.title)
    return try await client.value(
        for: APIRequest("/notes").adding(query: ["q": "crème brûlée"]), as: [Note].self)
}

/// Uses every part of a request.
func whole(_ client: CountersignClient, _ picture: URL) async throws {
    var request = APIRequest(
        .put, "/pictures/1", fields: [HeaderField("Content-Type", value: "image/png")], body: .bytes([1, 2]))
    request.set("Accept-Language", "de-AT")
    request.caller = .app
    print(
        request.method, request.path, request.value(of: "accept-language") ?? "", request.fields.count,
        request.body)
    let (data, response) = try await client.data(for: request) { far in print(far.sent) }
    print(data.count, response.isSuccess, response.fields.count, response.value(of: "ETag") ?? "")

    let deleting = APIRequest(.delete, picture)
    _ = try await client.data(for: deleting)
    for method: APIMethod in [.get, .head, .patch, .options, APIMethod("REPORT")] {
        print(method.description)
    }
}

/// A payment that must be executed once: the app stores `key` before the call and uses it again after a
/// restart.
func pay(_ client: CountersignClient, _ key: String) async throws {
    var payment = try APIRequest.json(.post, "/payments", ["amount": 12], coding: .snakeCase)
    payment.idempotencyKey = key
    do {
        _ = try await client.data(for: payment)
    } catch {
        guard error.isOutcomeUnknown else { throw error }
        print("Not known yet; to be asked again with the same key")
    }
}

/// Large bodies in both directions. The kind of a body states whether it can be sent twice.
func large(_ client: CountersignClient, _ file: String, _ lines: AsyncStream<[UInt8]>, sha256: [UInt8])
    async throws
{
    _ = try await client.upload(APIRequest(.put, "/film"), from: .file(path: file)) { far in print(far.sent) }
    _ = try await client.upload(
        APIRequest(.put, "/log"), from: .once(OnceBody(.bytes(9), pieces: lines), sha256: sha256))
    let again = ReplayableBody(.bytes(0)) { AsyncStream { $0.finish() } }
    _ = try await client.upload(APIRequest(.put, "/log"), from: .replayable(again))

    try await client.download(for: APIRequest("/film"), to: "/var/lib/example/film.mp4")
    let answer: APIAnswer = try await client.download(for: APIRequest("/events"))
    print(answer.response.length)
    for try await piece in answer.body { print(piece.count) }
}

/// Repeats a request until the session ends or the server no longer serves this version of the app.
func watch(_ client: CountersignClient) async throws {
    for try await (data, response) in client.poll(APIRequest("/news"), every: .seconds(30)) {
        print(data.count, response.status)
    }
}

func polling(_ client: CountersignClient) -> APIPolling {
    client.poll(APIRequest("/news"), every: .seconds(30))
}

/// Signs a request that another HTTP stack sends.
func elsewhere(_ client: CountersignClient) async throws {
    let signed: SignedRequest = try await client.signed(APIRequest("/notes"))
    print(signed.method, signed.url)
    for field in signed.fields { print("\(field.name): \(String(decoding: field.value, as: UTF8.self))") }
    if case .none = signed.body { print("no body") }
}

/// A request that the app signs itself, for the same sending code.
func own() -> SignedRequest {
    SignedRequest(method: .get, url: "https://api.example.com/notes", fields: [], body: APIRequest.Body.none)
}

/// Which party signed a response.
func whose(_ response: APIResponse) -> String {
    guard response.isGenuine else { return "not signed: trusted as far as the TLS connection" }
    switch response.signer {
    case .session: return "signed by the authority for this session"
    case .authority: return "signed by the authority"
    case .nobody: return "not signed"
    }
}

/// Signs a request for the account, or for the app alone.
func ask(_ caller: APIRequest.Caller) -> APIRequest {
    var request = APIRequest("/public")
    request.caller = caller == .account ? .account : .app
    request.method = .get
    request.path = "/public/2"
    request.fields = []
    request.body = .none
    return request
}
