import CountersignAuthority
import CountersignSchemes
import CountersignWire

extension Command {
    static let appMessages = Command(
        words: ["app", "messages"], summary: "show or set what refused callers are told, by language",
        positionals: [Positional(name: "APP")],
        options: [
            .value(
                "language", placeholder: "TAG",
                meaning: "of these texts: zh, pt-br; `default` for callers of all other languages"),
            .value(
                "file", placeholder: "FILE",
                meaning: "a JSON object of texts by refusal code; - reads standard input"),
            .value(
                "release", placeholder: "KEY_ID",
                meaning: "for callers of this release, in place of the app's"),
            .flag("list", meaning: "show all texts"),
            .flag("remove", meaning: "remove those of the language"), .data, .json,
        ],
        notes: """
            FILE holds {"CODE": "text"}: CODE is a refusal code (session-ended) or an old client's number
            (-100). It takes the place of all texts in that language: at most \
            \(RefusalTexts.longestFile) bytes, \
            \(RefusalTexts.longestText) a text, \(RefusalTexts.mostLanguages) languages.
            Old clients get a text as `err.msg`, others as `detail`, in the language that Accept-Language
            names first of those that there are. A code without a text keeps our own words; policy debug=on
            shows the exact reason. -99's link is set by `countersign release retire --update-url`.
            """
    ) { (run) throws(OperationalError) in
        let name = try run.appName()
        let deployment = try run.deployment()
        let release = try run.arguments.value("release").map { (text) throws(OperationalError) in
            try run.keyID(text, at: "--release")
        }
        guard let language = try run.language() else {
            for option in ["file", "remove"] where run.arguments.has(option) {
                throw OperationalError(.usage, message: "--\(option): expected --language beside it")
            }
            try list(name, release: release, in: deployment, for: run)
            return .success
        }
        guard !run.arguments.has("list"), run.arguments.has("remove") != run.arguments.has("file") else {
            throw OperationalError(
                .usage,
                message: "--language \(language): expected --file or --remove beside it, and no --list")
        }
        let texts = try run.arguments.value("file").map { (path) throws(OperationalError) -> RefusalTexts in
            let limit = RefusalTexts.longestFile
            return try RefusalTexts(
                json: path == "-" ? run.console.read(limit: limit) : Console.readFile(path, limit: limit))
        }
        try deployment.setRefusalTexts(texts, in: language, of: name, release: release)
        try run.print(
            [
                "app": .string(name.description), "release": .optional(release?.description),
                "language": .string(language.description), "texts": .integer(Int64(texts?.count ?? 0)),
            ]
        ) {
            texts.map { "\(name) has \($0.count) texts in \(language)" }
                ?? "\(name) has no texts in \(language) any more"
        }
        return .success
    }

    /// The app's own first, then each release's.
    private static func list(
        _ name: AppName, release: KeyID?, in deployment: Deployment, for run: Invocation
    ) throws(OperationalError) {
        let app = try deployment.app(name)
        var rows: [(release: KeyID?, language: LanguageTag, texts: RefusalTexts)] = []
        if release == nil {
            for (language, texts) in app.refusalTexts() { rows.append((nil, language, texts)) }
        }
        for one in try deployment.store.releases(of: name) where release == nil || one.id == release {
            for (language, texts) in one.refusalTexts() { rows.append((one.id, language, texts)) }
        }
        rows.sort {
            ($0.release?.description ?? "", $0.language.description)
                < ($1.release?.description ?? "", $1.language.description)
        }
        let json = rows.map { row -> JSONValue in
            [
                "release": .optional(row.release?.description), "language": .string(row.language.description),
                "texts": row.texts.json,
            ]
        }
        try run.print(["app": .string(name.description), "messages": .array(json)]) {
            if rows.isEmpty {
                return "\(name) has no texts; `countersign app messages \(name) --help` says how to set them"
            }
            return rows.map { row in
                let place = row.release.map { "\(row.language), release \($0)" } ?? "\(row.language)"
                return "\(place)\n\(row.texts.json.prettyText)"
            }.joined(separator: "\n")
        }
    }
}

extension Invocation {
    fileprivate func language() throws(OperationalError) -> LanguageTag? {
        guard let text = arguments.value("language") else { return nil }
        guard let language = LanguageTag(text) else {
            throw OperationalError(
                .usage, message: "--language `\(text)`: expected a tag such as zh or pt-br, or `default`")
        }
        return language
    }
}
