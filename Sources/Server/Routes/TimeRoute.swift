import CountersignHTTP
import CountersignSchemes
import CountersignWire

extension Route {
    /// `GET time`: what the clock says here, in words that a client can check. Source: docs/protocol.md, "Time".
    static func time(signedBy authority: Credentials) -> Route {
        Route(method: "GET", path: "/time", admission: .anyone) { (call) throws(Refusal) in
            let nonce = try TimeNonce.read(call.request)
            var members: [(name: String, value: JSONValue)] = [("time", .integer(call.now))]
            if let nonce { members.append(("nonce", .string(nonce))) }
            var answer = RouteAnswer(.object(members), signer: authority)
            // Without it, only the request's own signature keeps the answer from being good for whoever shows it later.
            if nonce != nil { answer.binding = .content }
            return answer
        }
    }
}

/// The number that ties the time to whoever asked for it.
private enum TimeNonce {
    private static let lengths = 8...64

    /// Nil where the query has none.
    static func read(_ request: Request) throws(Refusal) -> String? {
        guard let query = request.query else { return nil }
        let text = request.head.span.extracting(query.range)
        var nonce: String?
        do {
            var reader = Form.Reader()
            while let pair = try reader.next(in: text) {
                guard Form.isNamed("nonce", pair, of: text) else { continue }
                guard nonce == nil else { throw Refusal(.malformed, "nonce: comes twice") }
                var bytes = ByteBuffer()
                let value = try Form.decode(pair.value, of: text, into: &bytes)
                nonce = try checked(bytes.span.extracting(value.range))
            }
        } catch let problem as Form.Problem {
            throw Refusal(.malformed, "query: expected \(problem.expected) at byte \(problem.at)")
        } catch {
            throw error as? Refusal ?? Refusal(.malformed, "query: cannot be read")
        }
        return nonce
    }

    private static func checked(_ bytes: Span<UInt8>) throws(Refusal) -> String {
        var isVisible = lengths.contains(bytes.count)
        for index in bytes.indices where bytes[index] <= 0x20 || bytes[index] >= 0x7F { isVisible = false }
        guard isVisible else {
            throw Refusal(
                .malformed, "nonce: expected \(lengths.lowerBound) to \(lengths.upperBound) visible characters")
        }
        return bytes.text
    }
}
