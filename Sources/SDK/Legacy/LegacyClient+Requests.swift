import CountersignClient
import CountersignTransport
import CountersignWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension LegacyClient {
    /// Sends a request and collects its answer, of ``LegacyOptions/largestAnswer`` bytes at most.
    ///
    /// A token that ran out (`-101`) is renewed on the way, once however many requests find out, and the request is sent again: the server
    /// has refused the first copy. One whose answer was lost is **not** sent again, for these servers cannot tell a second copy from a
    /// second wish. An `err` of any other code, and any status, is an answer.
    ///
    /// Throws ``CountersignError/accountChanged`` rather than send it again in the name of somebody else who has signed in meanwhile;
    /// ``CountersignError/notSignedIn``, and sends nothing, where nobody is signed in and the request's caller is the account; ``CountersignError/signedOut(_:)``
    /// for `-100`; ``CountersignError/updateRequired(url:)`` for `-99`, and from then on without sending, until ``resume()``.
    public func data(for request: APIRequest) async throws(CountersignError) -> (Data, APIResponse) {
        let draft = try await draft(of: request)
        let response: Response
        do throws(LegacyProblem) {
            if request.caller == .account { try await open() }
            response = try await calls.send(draft, as: request.legacyCaller)
        } catch {
            throw CountersignError(error)
        }
        let body = response.message.body
        let fields = response.message.fields.map { field in
            HeaderField(response.message.text(field.name), bytes: Array(response.message.head[field.value.range]))
        }
        return (Data(body), APIResponse(status: response.status, fields: fields, length: .bytes(Int64(body.count))))
    }

    /// The value in an answer's JSON. Throws ``CountersignError/status(_:body:)`` for any status but 200 to 299.
    public func value<Value: Decodable>(
        for request: APIRequest, as type: Value.Type = Value.self
    ) async throws(CountersignError) -> Value {
        let (data, response) = try await data(for: request)
        guard response.isSuccess else { throw .status(response, body: Array(data)) }
        do {
            return try options.json.decoder.decode(type, from: data)
        } catch {
            throw .decoding("\(error)")
        }
    }

    /// A request as it would be sent now, token and all, for another HTTP stack. Good once, and for minutes. What comes back is for the
    /// sender to read.
    public func signed(_ request: APIRequest) async throws(CountersignError) -> SignedRequest {
        let draft = try await draft(of: request)
        do throws(LegacyProblem) {
            if request.caller == .account { try await open() }
            let signed = try await calls.signed(draft, as: request.legacyCaller)
            return SignedRequest(
                method: APIMethod(signed.method), url: "\(base.origin)\(signed.target.asText)",
                fields: signed.fields.map(HeaderField.init), body: signed.body.isEmpty ? .none : .bytes(signed.body))
        } catch {
            throw CountersignError(error)
        }
    }

    private func draft(of request: APIRequest) async throws(CountersignError) -> Draft {
        var draft = Draft(
            method: request.method.description, target: Array(try base.target(request.path).utf8),
            authority: base.origin.authority, transport: base.origin.security == .tls ? .tls : .plain)
        draft.fields = request.fields.map(Draft.Field.init)
        if request.value(of: "user-agent") == nil { draft.set("User-Agent", options.userAgent) }
        draft.body = try await bytes(of: request.body)
        return draft
    }

    /// Legacy schemes sign what stands in the body, or its MD5: it has to be in memory.
    private func bytes(of body: APIRequest.Body) async throws(CountersignError) -> [UInt8] {
        switch body {
        case .none: return []
        case .bytes(let bytes): return bytes
        case .file(let path): return try await collect(FileBody(path: path).body())
        case .replayable(let stream): return try await collect(stream)
        case .once: throw .misuse("body: a legacy request's body has to be in memory, or to be had anew")
        }
    }

    private func collect(_ stream: ReplayableBody) async throws(CountersignError) -> [UInt8] {
        let collector = Collector(most: options.largestAnswer)
        do {
            try await stream.write { piece in try await collector.take(piece) }
        } catch is CancellationError {
            throw .cancelled
        } catch {
            throw .misuse("body: its stream failed: \(error)")
        }
        return await collector.bytes
    }
}

private actor Collector {
    private(set) var bytes: [UInt8] = []
    private let most: Int

    init(most: Int) { self.most = most }

    struct TooLarge: Error {}

    func take(_ piece: [UInt8]) throws {
        try Task.checkCancellation()
        guard bytes.count + piece.count <= most else { throw TooLarge() }
        bytes += piece
    }
}

extension [UInt8] {
    fileprivate var asText: String { String(decoding: self, as: UTF8.self) }
}

extension APIRequest {
    fileprivate var legacyCaller: LegacyCalls.Caller {
        switch caller {
        case .account: .user
        case .app: .app
        }
    }
}
