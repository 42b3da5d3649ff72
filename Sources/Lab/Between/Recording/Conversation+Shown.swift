extension Conversation {
    /// For people: what one read on the wire, a message after the other. A few kilobytes at most.
    package var shown: String {
        guard isTLS else { return messages }
        return Conversation.records(client, marked: "→") + Conversation.records(server, marked: "←")
    }

    /// Each request with its answer; what is no HTTP as it came.
    private var messages: String {
        var (requests, responses) = (MessageReader(client), MessageReader(server))
        var text = ""
        for _ in 0..<4 {
            guard let request = try? requests.request() else { break }
            text += Conversation.text(request.bytes, marked: "→")
            guard let response = try? responses.response(to: request.message.method) else { break }
            text += Conversation.text(response.bytes, marked: "←")
        }
        return text + Conversation.text(requests.left, marked: "→") + Conversation.text(responses.left, marked: "←")
    }

    private static func records(_ stream: [UInt8], marked mark: String) -> String {
        let records = TLSRecord.all(in: stream)
        let lines = records.prefix(8).map { "\(mark) TLS \($0.shown)\n" }.joined()
        return lines + (records.count > 8 ? "\(mark) … \(records.count - 8) records more\n" : "")
    }

    /// Control characters are written out: what was on the wire must not move a terminal's cursor.
    private static func text(_ stream: [UInt8], marked mark: String) -> String {
        var text = "\(mark) "
        for scalar in String(decoding: stream.prefix(640), as: UTF8.self).unicodeScalars {
            switch scalar.value {
            case 0x0A: text += "\n\(mark) "
            case 0x0D: break
            case 0..<0x20, 0x7F..<0xA0: text += "\\u{\(String(scalar.value, radix: 16))}"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return stream.isEmpty ? "" : text + (stream.count > 640 ? " … \(stream.count - 640) bytes more\n" : "\n")
    }
}
