extension Conversation {
    /// For people: what one read on the wire. About two kilobytes at most.
    package var shown: String {
        guard isTLS else {
            return Conversation.text(client, marked: "→") + Conversation.text(server, marked: "←")
        }
        return Conversation.records(client, marked: "→") + Conversation.records(server, marked: "←")
    }

    private static func records(_ stream: [UInt8], marked mark: String) -> String {
        let records = TLSRecord.all(in: stream)
        let lines = records.prefix(8).map { "\(mark) TLS \($0.shown)\n" }.joined()
        return lines + (records.count > 8 ? "\(mark) … \(records.count - 8) records more\n" : "")
    }

    /// Control characters are written out: what was on the wire must not move a terminal's cursor.
    private static func text(_ stream: [UInt8], marked mark: String) -> String {
        var text = "\(mark) "
        for scalar in String(decoding: stream.prefix(1024), as: UTF8.self).unicodeScalars {
            switch scalar.value {
            case 0x0A: text += "\n\(mark) "
            case 0x0D: break
            case 0..<0x20, 0x7F..<0xA0: text += "\\u{\(String(scalar.value, radix: 16))}"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return stream.isEmpty ? "" : text + (stream.count > 1024 ? " … \(stream.count - 1024) bytes more\n" : "\n")
    }
}
