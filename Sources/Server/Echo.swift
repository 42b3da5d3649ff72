import CountersignHTTP
import CountersignSeal
import CountersignWire

/// The built-in backend, where no other was named: shows what a backend would have been sent.
enum Echo {
    /// JSON with method, target, fields (ours last) and the body's SHA-256 and length.
    static func answer(_ request: Request, added: [(name: String, value: String)], forwards: (Int) -> Bool) -> Answer {
        var fields = JSONLine()
        for index in request.fields.indices where forwards(index) {
            fields.add(named: request.text(request.fields[index].name), request.text(request.fields[index].value))
        }
        for field in added { fields.add(named: field.name.lowercased(), field.value) }
        fields.end()

        var line = JSONLine()
        line.add("method", request.text(request.method))
        line.add("target", request.text(request.target))
        line.add(raw: fields.bytes, as: "headers")
        line.add("body_length", request.body.count)
        line.add("body_sha256", Hex.encode(SHA256.digest(request.body.span).span))
        line.end()
        return Answer(status: 200, type: "application/json", body: line.bytes + [UInt8(ascii: "\n")])
    }
}
