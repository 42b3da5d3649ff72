import CountersignAuthority
import CountersignGate
import CountersignReplay
import CountersignWire
import Glibc

extension Configuration {
    /// The inputs from which the settings are read.
    package struct Sources: Sendable {
        /// In the order given, by setting name; the last one counts.
        package var flags: [(name: String, value: String)] = []
        package var environment: [String: String] = [:]
        /// The settings file, if one was named: its path, for messages, and its bytes.
        package var file: (path: String, bytes: [UInt8])?

        package init() {}

        /// Bytes of a settings file.
        package static let mostFileBytes = 1 << 20

        /// The same flags and environment with the file as it is now. Throws a usage error if it cannot be
        /// read; a pipe cannot be read twice.
        func readingFileAgain() throws(OperationalError) -> Sources {
            guard let path = file?.path else { return self }
            let file = try Sources.openedForReading(path)
            var bytes = [UInt8](repeating: 0, count: Sources.mostFileBytes + 1)
            guard let count = FileReader.fill(&bytes, from: file.number) else {
                throw SystemCallError(errno, while: "\(path): cannot read").fault(.usage)
            }
            guard count <= Sources.mostFileBytes else {
                throw OperationalError(
                    .usage, message: "\(path): over \(Sources.mostFileBytes) bytes")
            }
            var sources = self
            sources.file = (path, Array(bytes[..<count]))
            return sources
        }

        private static func openedForReading(_ path: String) throws(OperationalError) -> FileDescriptor {
            // Opening a pipe must not wait for a writer.
            let number = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            guard number >= 0 else {
                throw SystemCallError(errno, while: "\(path): cannot open").fault(.usage)
            }
            let file = FileDescriptor(owning: number)
            var status = stat()
            guard fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
                throw OperationalError(.usage, message: "\(path): expected a regular file to read again")
            }
            return file
        }
    }

    /// The settings that sources give, with everything that is wrong with them.
    package struct ReadResult: Sendable {
        /// With the defaults in the place of values that are invalid.
        package var configuration = Configuration()
        package var problems: [ConfigurationProblem] = []
        /// Where the value of each setting that is not the default was given, by name.
        package var origins: [String: ConfigurationProblem.Origin] = [:]
        /// The problem of a settings file that is not an object in JSON: none of its settings was read.
        fileprivate(set) var fileProblem: ConfigurationProblem?

        init() {}

        /// Those of a running server, which are valid.
        package init(running configuration: Configuration) { self.configuration = configuration }

        /// The settings; throws the first problem.
        func checked() throws(OperationalError) -> Configuration {
            if let problem = problems.first {
                throw OperationalError(.usage, message: problem.message)
            }
            return configuration
        }
    }

    /// Flags take precedence over `COUNTERSIGN_*`, then the file, then the defaults. An invalid value throws
    /// a usage error that names the source and the expected format; no value is ignored silently.
    package init(from sources: Sources) throws(OperationalError) {
        self = try Configuration.read(from: sources).checked()
    }

    /// Reads all sources, and goes on after a problem.
    ///
    /// Ignores environment variables that are no setting: Kubernetes gives every pod
    /// `COUNTERSIGN_SERVICE_HOST` and the like if a service is called countersign.
    package static func read(from sources: Sources) -> ReadResult {
        var reader = SettingsReader()
        if let file = sources.file { reader.read(file: file.path, bytes: file.bytes) }
        for setting in Setting.all {
            guard let text = sources.environment[setting.variable] else { continue }
            reader.apply(setting, value: text, from: .init(place: setting.variable))
        }
        for (name, text) in sources.flags {
            guard let setting = Setting.all.first(where: { $0.name == name }) else {
                reader.result.problems.append(
                    ConfigurationProblem(
                        message: "--\(name): no such flag", origin: .init(place: "--\(name)")))
                continue
            }
            reader.apply(setting, value: text, from: .init(place: setting.flag))
        }
        reader.finish()
        return reader.result
    }

    /// The path of the data folder that `sources` name, whatever is wrong with their other settings. Throws
    /// a usage error if the folder's own setting is invalid, or in a file of which nothing could be read.
    package static func dataFolder(in sources: Sources) throws(OperationalError) -> String {
        let result = read(from: sources)
        let hidden = result.origins["data"] == nil ? result.fileProblem : nil
        if let problem = result.problems.first(where: { $0.setting == "data" }) ?? hidden {
            throw OperationalError(.usage, message: problem.message)
        }
        return result.configuration.data
    }

    /// The settings as JSON, in the form of a settings file.
    package var shown: JSONValue {
        .object(Setting.all.map { (name: $0.key, value: $0.show(self)) })
    }
}

/// Applies one source after the other to the defaults, and collects what is wrong.
private struct SettingsReader {
    var result = Configuration.ReadResult()

    mutating func apply(_ setting: Setting, value text: String, from origin: ConfigurationProblem.Origin) {
        guard !text.isEmpty, !text.utf8.contains(0), setting.set(&result.configuration, text) != nil else {
            let shown = SettingsReader.excerpt(of: text)
            result.problems.append(
                ConfigurationProblem(
                    message: "\(origin.place): `\(shown)`: expected \(setting.expected)", origin: origin,
                    setting: setting.name, found: shown, expected: setting.expected))
            return
        }
        result.origins[setting.name] = origin
    }

    /// The settings in the file. JSON `null` leaves the default.
    mutating func read(file path: String, bytes: [UInt8]) {
        let document: JSONDocument
        do {
            document = try JSONReader.read(bytes, dialect: .comments)
        } catch {
            return reject(
                fileWith: ConfigurationProblem(
                    message: "\(path): not JSON (comments are allowed): \(error)",
                    origin: .init(
                        place: path, file: path, line: SettingsReader.line(at: error.offset, in: bytes)),
                    expected: "JSON; comments are allowed"))
        }
        guard let members = document.root.members else {
            return reject(
                fileWith: ConfigurationProblem(
                    message: "\(path): \(document.root.kind); expected an object with settings",
                    origin: .init(place: path, file: path, line: 1), found: document.root.kind,
                    expected: "an object with settings"))
        }
        for member in members {
            let line = SettingsReader.line(at: member.value.raw.range.lowerBound, in: bytes)
            guard let setting = Setting.all.first(where: { $0.key == member.name }) else {
                let known = Setting.all.map(\.key).joined(separator: ", ")
                let shown = SettingsReader.excerpt(of: member.name)
                result.problems.append(
                    ConfigurationProblem(
                        message: "\(path): `\(shown)`: no such setting; known are \(known)",
                        origin: .init(place: path, file: path, line: line), found: shown,
                        expected: "the key of a setting"))
                continue
            }
            let origin = ConfigurationProblem.Origin(
                place: "\(path): \(setting.key)", file: path, line: line)
            guard let text = SettingsReader.text(of: member.value, in: document) else {
                result.problems.append(
                    ConfigurationProblem(
                        message:
                            "\(path): \(setting.key): \(member.value.kind); expected \(setting.expected)",
                        origin: origin, setting: setting.name, found: member.value.kind,
                        expected: setting.expected))
                continue
            }
            if let text = text { apply(setting, value: text, from: origin) }
        }
    }

    private mutating func reject(fileWith problem: ConfigurationProblem) {
        result.fileProblem = problem
        result.problems.append(problem)
    }

    /// What follows from several settings together.
    mutating func finish() {
        var configuration = result.configuration
        if result.origins["store"] == nil { configuration.store = .default(in: configuration.data) }
        // An invalid value is reported already, and the default in its place contradicts nothing.
        let isCertain = !result.problems.contains {
            ["store", "replay"].contains($0.setting)
        }
        if !configuration.store.isShared, configuration.replay.shared == .postgreSQL, isCertain {
            reject(
                "replay", message: "--replay postgres: expected --store postgres://…, whose database it uses")
        }
        result.configuration = configuration
    }

    private mutating func reject(_ name: String, message: String) {
        result.problems.append(
            ConfigurationProblem(message: message, origin: result.origins[name], setting: name))
    }

    /// The number of the line, from 1, that has the byte at `offset`.
    private static func line(at offset: Int, in bytes: [UInt8]) -> Int {
        bytes.prefix(offset).count { $0 == UInt8(ascii: "\n") } + 1
    }

    /// A member's value in the form of a flag: a list of strings is joined by commas. The outer nil stands
    /// for a kind of value that no setting has, the inner one for `null`.
    private static func text(of value: JSON, in document: JSONDocument) -> String?? {
        switch value.content {
        case .null: return .some(nil)
        case .string(let text): return text
        case .number: return document.text(of: value)
        case .array(let elements):
            let texts = elements.compactMap(\.string)
            // Written out: with `?:` both branches would merge into the inner optional, and an invalid list
            // would read as null.
            guard texts.count == elements.count else { return nil }
            return texts.joined(separator: ",")
        case .bool, .object: return nil
        }
    }

    /// The given value for an error message: without what may be a password, and cut to a bounded length.
    private static func excerpt(of text: String) -> String {
        let scalars = masked(text.unicodeScalars).unicodeScalars
        let shown = scalars.count > 200 ? "\(String(scalars.prefix(200)))…" : String(scalars)
        let escaped = JSONValue.string(shown).text
        return String(escaped.dropFirst().dropLast())
    }

    /// Text without what stands before its last `@`; a URL also without its parameters, and without what
    /// follows `://` where the `@` or the host may have been forgotten. Text that is no URL and contains the
    /// word `password` is replaced as a whole. Compares scalars: with a combining character after it, `@` is
    /// another character.
    private static func masked(_ text: String.UnicodeScalarView) -> String {
        let start = text.firstRange(of: "://".unicodeScalars)?.upperBound
        if start == nil, String(text).lowercased().unicodeScalars.contains("password".unicodeScalars) {
            return "password***"
        }
        let scheme = shownScheme(text[..<(start ?? text.startIndex)])
        let rest = text[(start ?? text.startIndex)...]
        let query = rest.firstIndex(of: "?") ?? rest.endIndex
        let parameters = query == rest.endIndex ? "" : "?***"
        if let at = rest.lastIndex(of: "@") {
            // After a `?`, it may belong to the parameters, or the `?` to the password.
            return at < query ? "\(scheme)***\(String(rest[at..<query]))\(parameters)" : "\(scheme)***"
        }
        guard start != nil else { return String(text) }
        let place = rest[..<query]
        let authority = place.prefix { $0 != "/" }
        let port = authority.lastIndex(of: ":").map { authority[authority.index(after: $0)...] } ?? .init()
        let isPlain = authority.first != ":" && port.allSatisfy { ("0"..."9").contains($0) }
        return isPlain ? "\(scheme)\(String(place))\(parameters)" : "\(scheme)***"
    }

    /// `redis://` as it is; another text before `://` than a scheme's (RFC 3986, section 3.1), masked.
    private static func shownScheme(_ text: String.UnicodeScalarView.SubSequence) -> String {
        let isScheme = text.dropLast(3).allSatisfy { scalar in
            ["a"..."z", "A"..."Z", "0"..."9", "+"..."+", "-"..."."].contains { $0.contains(scalar) }
        }
        return isScheme ? String(text) : "***://"
    }
}
