import CountersignHTTP
import CountersignSeal
import CountersignWire

/// The built-in backend if no other is configured: shows what a backend would receive.
enum EchoBackend {
    /// JSON with method, target, fields (the gateway's last) and the body's SHA-256 and length.
    static func answer(_ request: Request, forwarding: borrowing ForwardedRequest) -> ServerResponse {
        var fields: [(name: String, value: String)] = []
        let selected = forwarding.selected(of: request)
        for index in request.fields.indices where selected.contains(index) {
            let field = request.fields[index]
            // Lines with the same name form one field: a JSON object has each name once. Source: RFC 9110
            // §5.3.
            if let first = fields.firstIndex(where: { $0.name == request.text(field.name) }) {
                fields[first].value += ", " + request.text(field.value)
            } else {
                fields.append((request.text(field.name), request.text(field.value)))
            }
        }
        for line in String(decoding: forwarding.added, as: UTF8.self).split(separator: "\r\n") {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields.append((line[..<colon].lowercased(), String(line[colon...].dropFirst(2))))
        }
        let body: JSONValue = [
            "method": .string(request.text(request.method)), "target": .string(request.text(request.target)),
            "headers": .object(fields.map { ($0.name, .string($0.value)) }),
            "body_length": .integer(Int64(request.body.count)),
            "body_sha256": .string(Hex.encode(SHA256.digest(request.body.span).span)),
        ]
        return ServerResponse(status: 200, type: "application/json", body: Array((body.text + "\n").utf8))
    }
}

extension UpstreamResponseObserver {
    /// Tells the observer what it would see of a backend's answer.
    func didAnswer(_ answer: ServerResponse) {
        requestMayHaveBeenProcessed()
        didBegin(
            status: answer.status,
            fields: UpstreamResponseFields(answer.fields.map { ($0.name.lowercased(), $0.value) }))
        didRead(answer.body.span)
        didEnd()
    }
}
