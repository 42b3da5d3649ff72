import CountersignGate
import CountersignHTTP

/// `Countersign-Update`, on each answer to a caller whose version will go. Source: docs/protocol.md, "Retiring a version".
enum UpdateField {
    /// The field line for a backend's answer, with its CRLF; empty for most.
    static func line(for caller: Caller) -> [UInt8] {
        guard let update = caller.update else { return [] }
        return Array("\(UpdateNotice.fieldName): \(update.fieldValue)\r\n".utf8)
    }
}

extension Answer {
    func telling(_ caller: Caller?) -> Answer {
        guard let update = caller?.update else { return self }
        var answer = self
        answer.fields.append(Field(UpdateNotice.fieldName, update.fieldValue))
        return answer
    }
}

extension Route {
    /// What a version that may only read is still let do here, beside reading: keep the session alive that it reads with,
    /// and end it.
    var effect: Releases.Effect {
        switch "\(path)" {
        case "/token", "/logout": .reads
        default: "\(method)" == "GET" ? .reads : .changes
        }
    }
}
