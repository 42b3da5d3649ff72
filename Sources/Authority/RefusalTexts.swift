import CountersignSchemes
import CountersignWire

/// An app's own texts of refusals in one language: a JSON object whose names are refusal codes
/// (`session-ended`) or the numbers of legacy clients (`-100`). Source: docs/protocol.md, "Texts of
/// refusals".
package struct RefusalTexts: Sendable, Equatable {
    package static let longestFile = 64 << 10
    /// Bytes of one text.
    package static let longestText = 2048
    /// Languages of one app, and of one release.
    package static let mostLanguages = 32

    /// By name.
    private let texts: [String: String]

    /// Parses a file; throws a usage error that names the problem.
    package init(json bytes: [UInt8]) throws(OperationalError) {
        var bounds = JSONReader.Bounds()
        (bounds.bytes, bounds.depth) = (RefusalTexts.longestFile, 1)
        let document: JSONDocument
        do {
            document = try JSONReader.read(bytes, bounds: bounds)
        } catch {
            throw OperationalError(.usage, message: "texts: \(error)")
        }
        guard let members = document.root.members, !members.isEmpty else {
            throw OperationalError(
                .usage,
                message: "texts: expected a JSON object of texts by refusal code, such as {\"-100\": \"…\"}")
        }
        var texts: [String: String] = [:]
        for member in members {
            guard RefusalTexts.names.contains(member.name) else {
                let known = RefusalTexts.names.sorted().joined(separator: ", ")
                throw OperationalError(
                    .usage,
                    message: "texts: `\(member.name.prefix(64))` is not a refusal code; known are \(known)")
            }
            guard let text = member.value.string, RefusalTexts.isGood(text) else {
                throw OperationalError(
                    .usage,
                    message:
                        "texts: \(member.name): expected 1 to \(RefusalTexts.longestText) bytes without "
                        + "control characters"
                )
            }
            texts[member.name] = text
        }
        self.texts = texts
    }

    private static let names = Set(
        Refusal.Code.allCases.map(\.name) + Refusal.Code.allCases.map { String($0.legacyNumber) })

    private static func isGood(_ text: String) -> Bool {
        (1...longestText).contains(text.utf8.count)
            && text.unicodeScalars.allSatisfy { scalar in
                switch scalar.value {
                case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029: false
                default: true
                }
            }
    }

    /// The text of the code's name, else that of its number; nil if there is neither.
    package func text(for code: Refusal.Code) -> String? {
        texts[code.name] ?? texts[String(code.legacyNumber)]
    }

    package var count: Int { texts.count }

    /// The form that is stored and shown.
    package var json: JSONValue {
        .object(texts.sorted { $0.key < $1.key }.map { (name: $0.key, value: JSONValue.string($0.value)) })
    }
}

/// The encoding of texts among an app's and a release's settings: one setting for each language.
enum RefusalTextSetting {
    private static let prefix = "messages/"

    static func name(_ language: LanguageTag) -> String { prefix + language.description }

    /// The texts of all languages. Texts that this build cannot read are ignored: they affect no decision,
    /// and must not keep a server from its keys.
    static func read(_ settings: [String: String]) -> [LanguageTag: RefusalTexts] {
        var found: [LanguageTag: RefusalTexts] = [:]
        for (name, text) in settings {
            guard let language = language(ofSetting: name) else { continue }
            found[language] = try? RefusalTexts(json: Array(text.utf8))
        }
        return found
    }

    static func isRefusalText(_ name: String) -> Bool { name.hasPrefix(prefix) }

    /// Nil for other settings.
    static func language(ofSetting name: String) -> LanguageTag? {
        name.hasPrefix(prefix) ? LanguageTag(String(name.dropFirst(prefix.count))) : nil
    }
}

extension App {
    /// By language.
    package func refusalTexts() -> [LanguageTag: RefusalTexts] {
        var texts: [String: String] = [:]
        for (name, setting) in settings { if case .text(let text) = setting { texts[name] = text } }
        return RefusalTextSetting.read(texts)
    }
}

extension Release {
    /// By language; for other languages the app's texts apply.
    package func refusalTexts() -> [LanguageTag: RefusalTexts] { RefusalTextSetting.read(settings) }

    /// The release's own policy settings.
    package var ownPolicy: [String: String] {
        settings.filter { !RefusalTextSetting.isRefusalText($0.key) }
    }
}

extension Deployment {
    /// Sets or removes the texts of a language, of one release or of the app.
    package func setRefusalTexts(
        _ texts: RefusalTexts?, in language: LanguageTag, of name: AppName, release id: KeyID?
    ) throws(OperationalError) {
        let app = try app(name)
        let release = try id.map { (id) throws(OperationalError) in try self.release(id) }
        if let release, release.app != name {
            throw OperationalError(
                .failed, message: "release \(release.id): belongs to \(release.app), not to \(name)")
        }
        let earlier = release?.refusalTexts() ?? app.refusalTexts()
        if texts == nil, earlier[language] == nil {
            throw OperationalError(.failed, message: "texts: there are no texts in \(language)")
        }
        guard texts == nil || earlier[language] != nil || earlier.count < RefusalTexts.mostLanguages else {
            throw OperationalError(
                .failed,
                message: "texts: there are \(earlier.count) languages, which is the maximum")
        }
        let setting = RefusalTextSetting.name(language)
        let told: [(name: String, value: JSONValue)] = [
            ("language", .string(language.description)), ("texts", .integer(Int64(texts?.count ?? 0))),
        ]
        let changed: ChangeOutcome
        if let release {
            let draft = auditDraft(for: .appMessages, on: .release(release.id, of: name), details: told)
            changed = try store.change(release.id, applying: [(setting, texts?.json.text)], recording: draft)
        } else {
            let draft = auditDraft(for: .appMessages, on: .app(name), details: told)
            let stored = texts.map { StoredSetting.text($0.json.text) }
            changed = try store.change(name, applying: [(setting, stored)], recording: draft)
        }
        guard changed == .yes else {
            throw OperationalError(.failed, message: "app \(name): it was removed meanwhile")
        }
        generation.advance()
    }
}

/// The texts of all apps and releases at one moment. Only refusals read it; accepted requests do not.
struct RefusalTextTable: Sendable {
    private var apps: [String: [LanguageTag: RefusalTexts]] = [:]
    private var releases: [KeyID: [LanguageTag: RefusalTexts]] = [:]

    mutating func add(_ app: App) {
        let texts = app.refusalTexts()
        if !texts.isEmpty { apps[app.name.description] = texts }
    }

    mutating func add(_ release: Release) {
        let texts = release.refusalTexts()
        if !texts.isEmpty { releases[release.id] = texts }
    }

    var isEmpty: Bool { apps.isEmpty && releases.isEmpty }

    /// The text in the first of `languages` that has one: the release's, else the app's.
    func find(
        _ code: Refusal.Code, of app: String, release: KeyID?, in languages: AcceptedLanguages
    ) -> RefusalText? {
        let (own, shared) = (release.flatMap { releases[$0] }, apps[app])
        guard own != nil || shared != nil else { return nil }
        return languages.find { own?[$0]?.text(for: code) ?? shared?[$0]?.text(for: code) }
            .map { RefusalText(text: $0.text, language: $0.language) }
    }
}

/// A refusal in its app's own words.
package struct RefusalText: Sendable, Equatable {
    package let text: String
    package let language: LanguageTag
}
