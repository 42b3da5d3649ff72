import CountersignWire

extension Configuration {
    /// What `serve` was told, and by whom.
    package struct Sources: Sendable {
        /// In the order given, by a setting's name; the last one counts.
        package var flags: [(name: String, value: String)] = []
        package var environment: [String: String] = [:]
        /// The settings file, if one was named: its path, for messages, and its bytes.
        package var file: (path: String, bytes: [UInt8])?

        package init() {}
    }

    /// Flags over `COUNTERSIGN_*` over the file over defaults. A value that is none is one ``Fault`` of usage, which
    /// names where it stands and what was expected there; it is never passed over in silence.
    ///
    /// Variables that are no setting of ours are let be: Kubernetes gives every pod `COUNTERSIGN_SERVICE_HOST` and the
    /// like, once a service is called countersign.
    package init(from sources: Sources) throws(Fault) {
        self.init()
        var hasStore = false
        func apply(_ setting: Setting, _ text: String, at place: String) throws(Fault) {
            guard !text.isEmpty, !text.utf8.contains(0), setting.set(&self, text) != nil else {
                throw Fault(.usage, "\(place): \(Configuration.quoted(text)): expected \(setting.expected)")
            }
            hasStore = hasStore || setting.name == "store"
        }

        for (setting, text) in try Configuration.settings(in: sources.file) {
            try apply(setting, text, at: "\(sources.file?.path ?? ""): \(setting.key)")
        }
        for setting in Setting.all {
            guard let text = sources.environment[setting.variable] else { continue }
            try apply(setting, text, at: setting.variable)
        }
        for (name, text) in sources.flags {
            guard let setting = Setting.all.first(where: { $0.name == name }) else {
                throw Fault(.usage, "--\(name): no such flag")
            }
            try apply(setting, text, at: setting.flag)
        }
        if !hasStore { store = .default(in: data) }
    }

    /// The settings that the file makes, as text. JSON `null` leaves the default.
    private static func settings(
        in file: (path: String, bytes: [UInt8])?
    ) throws(Fault) -> [(setting: Setting, text: String)] {
        guard let file else { return [] }
        let document: JSONDocument
        do {
            document = try JSONReader.read(file.bytes, dialect: .comments)
        } catch {
            throw Fault(.usage, "\(file.path): not JSON (comments are allowed): \(error)")
        }
        guard let members = document.root.members else {
            throw Fault(.usage, "\(file.path): \(document.root.kind); expected an object with settings")
        }
        var found: [(setting: Setting, text: String)] = []
        for member in members {
            guard let setting = Setting.all.first(where: { $0.key == member.name }) else {
                let known = Setting.all.map(\.key).joined(separator: ", ")
                throw Fault(.usage, "\(file.path): \(quoted(member.name)): no such setting; known are \(known)")
            }
            guard let text = text(of: member.value, in: document) else {
                throw Fault(
                    .usage, "\(file.path): \(setting.key): \(member.value.kind); expected \(setting.expected)")
            }
            if let text = text { found.append((setting, text)) }
        }
        return found
    }

    /// A member's value as a flag would have it: a list of strings is joined by commas. The outer nil is for a kind of
    /// value that no setting has, the inner one for `null`.
    private static func text(of value: JSON, in document: JSONDocument) -> String?? {
        switch value.content {
        case .null: return .some(nil)
        case .string(let text): return text
        case .number: return document.text(of: value)
        case .array(let elements):
            let texts = elements.compactMap(\.string)
            // Spelled out: the two sides of `?:` would meet in the inner optional, and a bad list read as null.
            guard texts.count == elements.count else { return nil }
            return texts.joined(separator: ",")
        case .bool, .object: return nil
        }
    }

    /// What was written, fit for a message: a URL's password is masked, and it ends somewhere.
    private static func quoted(_ text: String) -> String {
        var shown = text
        if let start = text.firstRange(of: "://"), let at = text[start.upperBound...].lastIndex(of: "@") {
            shown = "\(text[..<start.upperBound])***\(text[at...])"
        }
        let escaped = JSONValue.string(shown.count > 200 ? "\(shown.prefix(200))…" : shown).text
        return "`\(escaped.dropFirst().dropLast())`"
    }

    /// The result as JSON that is itself a settings file.
    package var shown: JSONValue {
        .object(Setting.all.map { (name: $0.key, value: $0.show(self)) })
    }
}
