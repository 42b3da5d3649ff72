import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignThreads
import CountersignWire

extension Route {
    /// Routes for all callers: whether the server serves, and the keys with which backends verify assertions.
    static func open(_ assertionKeys: AssertionKeys) -> [Route] {
        [
            Route(.health) { _ in RouteResult(.healthy) },
            Route(.jwks) { call in
                RouteResult(assertionKeys.answer(at: call.now))
            },
        ]
    }
}

extension ServerResponse {
    static let healthy = ServerResponse(
        status: 200, type: "application/json", body: Array("{\"status\":\"ok\"}\n".utf8))
}

extension Route {
    /// `GET time`: the authority's clock, in an answer that a client can verify. Source: docs/protocol.md,
    /// "Time".
    ///
    /// `retention` states how long keys are kept, so that a client can learn it before its first keyed
    /// request.
    static func time(
        signedBy signing: ResponseSigner, by clock: any TimeSource, stating retention: ServerResponse.Field
    ) -> Route {
        Route(.time) { (call) throws(Refusal) in
            guard clock.isPresent(call.now) else {
                throw Refusal(.unavailable, detail: "the clock is not trusted", retryAfter: 60)
            }
            let nonce = try TimeNonce.read(call.request)
            var members: [(name: String, value: JSONValue)] = [("time", .integer(call.now))]
            if let nonce { members.append(("nonce", .string(nonce))) }
            var answer = RouteResult(.object(members), signer: signing.authority)
            // Without a nonce, only the binding to the request's signature keeps another party from
            // presenting the answer later.
            if nonce != nil { answer.binding = .content }
            answer.answer.fields.append(retention)
            return answer
        }
    }
}

/// The nonce that binds the time to the request that asked for it.
private enum TimeNonce {
    private static let lengths = 8...64

    /// Nil if the query has none.
    static func read(_ request: Request) throws(Refusal) -> String? {
        guard let query = request.query else { return nil }
        let text = request.head.span.extracting(query.range)
        var nonce: String?
        do {
            var reader = Form.Reader()
            while let pair = try reader.next(in: text) {
                guard Form.isNamed("nonce", pair: pair, of: text) else { continue }
                guard nonce == nil else { throw Refusal(.malformed, detail: "nonce: comes twice") }
                var bytes = ByteBuffer()
                let value = try Form.decode(pair.value, of: text, into: &bytes)
                nonce = try checked(bytes.span.extracting(value.range))
            }
        } catch let problem as ParseError {
            throw Refusal(.malformed, detail: "query: \(problem)")
        } catch {
            throw error as? Refusal ?? Refusal(.malformed, detail: "query: cannot be read")
        }
        return nonce
    }

    private static func checked(_ bytes: Span<UInt8>) throws(Refusal) -> String {
        var isVisible = lengths.contains(bytes.count)
        for index in bytes.indices where bytes[index] <= 0x20 || bytes[index] >= 0x7F { isVisible = false }
        guard isVisible else {
            throw Refusal(
                .malformed,
                detail: "nonce: expected \(lengths.lowerBound) to \(lengths.upperBound) visible characters")
        }
        return bytes.text
    }
}

extension Route {
    /// `GET pins/APP`: the app's signed pin manifest, as published. Needs no authentication; clients verify
    /// the manifest's own signature.
    static func pins(_ shelf: PinManifestCache) -> Route {
        Route(.pins) { call in
            RouteResult(shelf.answer(of: call.parameter))
        }
    }
}

/// The manifests in memory. The next request sees a manifest that another process publishes.
///
/// Safe to share: `held` is read and replaced under `lock` only.
final class PinManifestCache: @unchecked Sendable {
    /// How long caches may keep an answer: the pin of a lost key should leave clients soon.
    private static let cacheSeconds = 60

    private let deployment: Deployment
    private let lock = ReadWriteLock()
    private var held: (manifests: PinManifests, generation: UInt64)?

    init(_ deployment: Deployment) { self.deployment = deployment }

    func answer(of name: String) -> ServerResponse {
        guard let app = AppName(name) else { return .notFound }
        do {
            guard let text = try latest().text(of: app) else { return .notFound }
            return ServerResponse(
                status: 200, type: "application/json",
                fields: [.init("Cache-Control", value: "public, max-age=\(PinManifestCache.cacheSeconds)")],
                body: Array(text.utf8))
        } catch {
            return .notReadable
        }
    }

    /// Reads the generation before the store: a change between the two reads is then loaded twice, never
    /// missed.
    private func latest() throws(OperationalError) -> PinManifests {
        let generation = deployment.generation.current
        if let held = lock.read({ held }), held.generation == generation { return held.manifests }
        let fresh = try deployment.pinManifests()
        lock.write { held = (fresh, generation) }
        return fresh
    }
}
