import CountersignWire

extension Explanation {
    /// `{"stages":[{"name":…,"text":…}],"cause":{"code":…,"sentence":…,"remedy":…}|null,"differs":{…}}`, each stage cut
    /// after that many bytes.
    package func json(longest: Int = .max) -> JSONValue {
        var members: [(name: String, value: JSONValue)] = [
            ("stages", stagesJSON(longest: longest)), ("cause", cause?.json ?? .null),
        ]
        if let difference = cause?.difference { members.append(("differs", difference.json)) }
        return .object(members)
    }

    package func stagesJSON(longest: Int = .max) -> JSONValue {
        .array(
            stages.map { stage in
                var text = stage.text
                if text.utf8.count > longest {
                    text = String(decoding: text.utf8.prefix(longest), as: UTF8.self) + "… (\(text.utf8.count) bytes)"
                }
                return ["name": .string(stage.name), "text": .string(text)]
            })
    }
}

extension Cause {
    package var json: JSONValue {
        ["code": .string(code), "sentence": .string(sentence), "remedy": .string(remedy)]
    }
}

extension Difference {
    package var json: JSONValue {
        [
            "component": .string(component), "line": .integer(Int64(line)), "byte": .integer(Int64(byte)),
            "signed": .string(signed), "received": .string(received),
        ]
    }
}
