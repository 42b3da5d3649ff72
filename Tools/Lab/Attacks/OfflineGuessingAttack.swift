import CountersignOpaque
import CountersignSeal
import CountersignWire

/// Tests common passwords offline: many people choose the same ones.
struct OfflineGuessingAttack: Attack {
    let name: AttackName = "offline-guessing"
    let column = Column.offlineGuessing
    let sentence =
        "Tests a login that passed against a list of 20,000 words, without asking the server, and signs in "
        + "with the one that fits."

    func exemption(of row: RowProfile) -> String? { row.hasPasswords ? nil : "there are no passwords" }

    func run(on stage: Stage) async throws -> AttackOutcome {
        try await stage.requireSignInAndPayment(by: stage.newVictim())
        let victim = try await stage.newVictim()
        // A rung whose value changes each minute is tested within the minute, or a second time.
        for _ in 0..<2 {
            guard let exchanges = try await stage.captureExchanges(while: victim.signIn) else {
                return stage.appRefusesCertificate
            }
            if let transcript = OpaqueTranscript(exchanges) {
                return try test(transcript, of: victim, on: stage)
            }
            guard let login = exchanges.compactMap({ stage.attackKit.login(in: $0) }).first else {
                throw LabError("\(stage.row.name): the victim signed in, and no login was seen")
            }
            stage.note(.attacker, action: "has the login of \(login.name)", showing: login.value)
            if let found = try await guess(login, of: victim, on: stage) { return .succeeded(found) }
        }
        return .failed("none of the \(stage.words.all.count) words fits, though the victim's is among them")
    }

    private func guess(_ login: CapturedLogin, of victim: any Victim, on stage: Stage) async throws -> String?
    {
        let found = WordListSearch.run(over: stage.words.all) { word in
            stage.attackKit.value(of: word, name: login.name, key: stage.appKey) == login.value
        }
        stage.note(
            .attacker, action: "tests \(found.tried) words, at \(found.shownRate)", showing: found.word)
        guard let word = found.word else { return nil }
        for again in stage.attackKit.logins(name: login.name, password: word, key: stage.appKey) {
            if case .paid = try await stage.signIn(with: again, as: victim) {
                return "the password was found at \(found.shownRate), signs in, and moves money"
            }
        }
        // A new session or minute can make this login fail; the password is known all the same.
        return "the password was found at \(found.shownRate): it is `\(word)`"
    }

    private func test(_ transcript: OpaqueTranscript, of victim: any Victim, on stage: Stage) throws
        -> AttackOutcome
    {
        let found = WordListSearch.run(over: stage.words.all) { transcript.confirms($0) }
        stage.note(
            .attacker, action: "tests \(found.tried) words on the transcript, at \(found.shownRate)",
            showing: transcript.shown)
        if let word = found.word { return .succeeded("the transcript tells that the password is `\(word)`") }
        guard let password = victim.password, stage.words.all.contains(password) else {
            throw LabError("\(stage.row.name): the victim's password is none of the list's")
        }
        return .failed(
            """
            the transcript fits every word, the right one as well as any other: the password was blinded \
            with a number that is new for each login and never sent; \(found.tried) words tried at \
            \(found.shownRate)
            """)
    }
}

/// What an observer of an OPAQUE login sees: the blinded password, the server's evaluation of it, and two
/// MACs under keys that the observer does not have. Source: RFC 9807 §6; docs/protocol.md, "Login".
struct OpaqueTranscript: Sendable {
    /// Group elements that depend on the password.
    private let elements: Set<[UInt8]>
    let shown: String

    /// Nil where `exchanges` contain no such login.
    init?(_ exchanges: [RawExchange]) {
        var (elements, shown) = (Set<[UInt8]>(), "")
        for exchange in exchanges where exchange.request.path.hasSuffix("/login/start") {
            let sent = OpaqueTranscript.message("ke1", in: exchange.request.body)
            let answered = exchange.response.flatMap { OpaqueTranscript.message("ke2", in: $0.body) }
            // Both messages begin with an element: the blinded password, and its evaluation under the
            // server's key.
            for message in [sent, answered].compactMap(\.self)
            where message.count > Ristretto255.Element.count {
                elements.insert(Array(message[..<Ristretto255.Element.count]))
            }
            shown += exchange.request.shown + "\n" + (exchange.response?.shown ?? "")
        }
        guard !elements.isEmpty else { return nil }
        self.elements = elements
        self.shown = shown
    }

    /// Whether the transcript proves that `word` is the password: where the blind is missing or 1. With a
    /// random blind every word fits, since each word has a blind that results in the same element.
    func confirms(_ word: String) -> Bool {
        guard let password = Password(Secret(copying: Array(word.utf8).span)), let element = password.element
        else {
            return false
        }
        return elements.contains(element.bytes)
    }

    private static func message(_ name: String, in body: [UInt8]) -> [UInt8]? {
        guard let document = try? JSONReader.read(body), let text = document.root[name]?.string else {
            return nil
        }
        return Base64.decode(text, as: .url)
    }
}
