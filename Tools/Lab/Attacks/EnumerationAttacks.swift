import CountersignWire

/// Finds out from the contents of responses which names have accounts.
struct EnumerationContentAttack: Attack {
    let name: AttackName = "enumeration-content"
    let column = Column.enumeration
    let sentence =
        "Signs in with a wrong password under twelve names, and tells by what is answered which of them have "
        + "an account."

    func exemption(of row: RowProfile) -> String? { row.hasPasswords ? nil : "no user signs in" }

    func run(on stage: Stage) async throws -> AttackOutcome {
        try await stage.requireSignInAndPayment(by: stage.newVictim())
        try await stage.requireValidForgery()
        let census = try await AccountSample(of: 12, on: stage)
        let probe = LoginProbe(stage: stage)
        // Each name twice: a feature that differs between two responses about one name is random.
        let own = [
            try await features(of: census.own, probedBy: probe),
            try await features(of: census.own, probedBy: probe),
        ]
        let unknown = [
            try await features(of: census.unknown, probedBy: probe),
            try await features(of: census.unknown, probedBy: probe),
        ]
        let signs = own[0].filter { sign, value in
            own[1][sign] == value && unknown[0][sign] == unknown[1][sign] && unknown[0][sign] != value
        }
        stage.note(
            .attacker,
            action:
                "asks about its own name and an unknown one: \(signs.count) of \(own[0].count) "
                + "features differ",
            showing: signs.isEmpty
                ? nil : signs.map { "\($0.key): \($0.value)" }.sorted().joined(separator: "\n"))

        var answers: [String: [String: String]] = [:]
        for name in census.names { answers[name] = try await features(of: name, probedBy: probe) }
        for (sign, value) in signs.sorted(by: { $0.key < $1.key }) {
            let suspects = Set(census.names.filter { answers[$0]?[sign] == value })
            stage.note(.attacker, action: "goes by `\(sign)`: \(census.score(suspects))")
            if census.isRight(suspects) {
                return .succeeded(
                    "`\(sign)` of the answer reveals the accounts: \(census.score(suspects))")
            }
        }
        return .failed(
            "the answers are the same but for what is random in each: \(own[0].count) features compared")
    }

    /// The features of all responses to one login, by name: the status of each step, each field with its
    /// length, the body, its length, and each of its members.
    private func features(of name: String, probedBy probe: LoginProbe) async throws -> [String: String] {
        let first = try await probe.stage.network.send(probe.request(name))
        guard !first.isLimit else {
            throw LabError("\(probe.stage.row.name): too many attempts, before \(name) was asked about")
        }
        probe.stage.note(.server, action: "answers to a wrong password of \(name)", showing: first.shown)
        var found = ResponseFeatures(first, step: 1).values
        if let next = probe.request(after: first) {
            let second = try await probe.stage.network.send(next)
            found.merge(ResponseFeatures(second, step: 2).values) { one, _ in one }
        }
        return found
    }
}

/// A response as named features, so that two responses can be compared feature by feature.
struct ResponseFeatures {
    private(set) var values: [String: String] = [:]
    private let step: Int

    /// `step` distinguishes the responses of one login.
    init(_ response: RawResponse, step: Int) {
        self.step = step
        add("status", value: "\(response.status)")
        add("fields", value: response.fields.lines.map { $0.name.lowercased() }.joined(separator: " "))
        for line in response.fields.lines {
            add("field \(line.name.lowercased())", value: line.value)
            add("length of field \(line.name.lowercased())", value: "\(line.value.utf8.count)")
        }
        add("body", value: response.text)
        add("length of the body", value: "\(response.body.count)")
        if let document = try? JSONReader.read(response.body) {
            add(document.root, of: document, named: "body")
        }
    }

    private mutating func add(_ feature: String, value: String) { values["\(step) \(feature)"] = value }

    private mutating func add(_ value: JSON, of document: JSONDocument, named name: String) {
        add("kind of \(name)", value: value.kind)
        add(name == "body" ? "members" : "value of \(name)", value: document.text(of: value))
        add("length of \(name)", value: "\(document.text(of: value).utf8.count)")
        guard let members = value.members else { return }
        add("members of \(name)", value: members.map(\.name).joined(separator: " "))
        for member in members { add(member.value, of: document, named: "\(name).\(member.name)") }
    }
}

/// Finds out from response times which names have accounts: a server that computes the slow hash only for a
/// name that it finds answers faster for the others.
struct EnumerationTimeAttack: Attack {
    let name: AttackName = "enumeration-time"
    let column = Column.enumeration
    let sentence =
        "Signs in with a wrong password under twelve names, and tells by how long it takes which of them "
        + "have an account."

    /// Login attempts for each name. The gateway accepts ten attempts of unknown devices for one account.
    private static let samples = 5
    /// A smaller difference can be measured on loopback, but not over a network.
    private static let shortest = Duration.microseconds(200)

    func exemption(of row: RowProfile) -> String? { row.hasPasswords ? nil : "no user signs in" }

    /// An attack succeeds in two rounds with different names: by chance all names are right once in some ten
    /// million runs. There are four rounds, since other load on the machine can disturb one.
    func run(on stage: Stage) async throws -> AttackOutcome {
        try await stage.requireSignInAndPayment(by: stage.newVictim())
        try await stage.requireValidForgery()
        var right = 0
        for round in 1...4 {
            let census = try await AccountSample(of: 12, on: stage)
            let times = try await times(of: census.names + [census.own, census.unknown], on: stage)
            guard let own = times[census.own], let unknown = times[census.unknown] else {
                throw LabError("\(stage.row.name): a name was not asked about")
            }
            let difference = "\(shown(own)) for its own name, \(shown(unknown)) for an unknown one"
            guard max(own - unknown, unknown - own) >= EnumerationTimeAttack.shortest else {
                return .failed("an account and none take as long: \(difference)")
            }
            let suspects = EnumerationTimeAttack.members(
                among: census.names, times: times, own: own, unknown: unknown)
            stage.note(
                .attacker, action: "round \(round): \(difference); goes by that: \(census.score(suspects))",
                showing: census.names.map { "\($0) \(times[$0].map(shown) ?? "")" }.joined(separator: "\n"))
            if census.isRight(suspects) { right += 1 }
            if right == 2 {
                return .succeeded("each of 24 names was told right by the time alone: \(difference)")
            }
        }
        return .failed("the times do not tell all names of a dozen, in four rounds")
    }

    /// The shortest response time for each name, measured in random order: other load on the machine only
    /// lengthens a time.
    private func times(of names: [String], on stage: Stage) async throws -> [String: Duration] {
        let probe = LoginProbe(stage: stage)
        var shortest: [String: Duration] = [:]
        for _ in 0..<EnumerationTimeAttack.samples {
            let order = names.shuffled()
            // The first response on a connection is not counted.
            var requests = [try probe.request("\(names[0])x")]
            for name in order { requests.append(try probe.request(name)) }
            let answers = try await stage.network.sendTimed(requests).dropFirst()
            for (name, answer) in zip(order, answers) {
                guard !answer.response.isLimit else {
                    throw LabError("\(stage.row.name): too many attempts, before \(name) was asked about")
                }
                shortest[name] = min(shortest[name] ?? answer.taken, answer.taken)
            }
        }
        return shortest
    }

    /// The names whose times are on the same side of the midpoint between `own` and `unknown` as `own`.
    static func members(
        among names: [String], times: [String: Duration], own: Duration, unknown: Duration
    ) -> Set<String> {
        let middle = (own + unknown) / 2
        return Set(names.filter { ((times[$0] ?? middle) > middle) == (own > unknown) })
    }

    private func shown(_ time: Duration) -> String { "\(Int(time / .microseconds(1))) µs" }
}

/// Names that the attacker divides into those with an account and those without: half of them have one.
struct AccountSample: Sendable {
    /// In random order.
    let names: [String]
    /// The names with an account, which the attacker does not know.
    private let members: Set<String>
    /// The attacker's own account and a name that the attacker knows to have none: the two references.
    let own: String
    let unknown: String

    /// Creates an account for half of the names.
    init(of count: Int, on stage: Stage) async throws {
        var known: [String] = []
        for _ in 0..<count / 2 { known.append(try await stage.newVictim().name) }
        let attacker = try await stage.newVictim().name
        let strangers = AccountSample.unknownNames(resembling: known + [attacker])
        (own, unknown) = (attacker, strangers.last ?? "unknown")
        members = Set(known)
        names = (known + strangers.dropLast()).shuffled()
    }

    /// Whether exactly these names have an account. A guess is right once in 4,096 times for twelve names.
    func isRight(_ suspects: Set<String>) -> Bool { suspects == members }

    /// For the report, after the measurements.
    func score(_ suspects: Set<String>) -> String { "\(hits(suspects)) of \(names.count) names right" }

    /// How many of the names were classified correctly.
    func hits(_ suspects: Set<String>) -> Int {
        names.count { suspects.contains($0) == members.contains($0) }
    }

    /// Names without account, of the same form and length as `names`: a name that can be told by its form
    /// would prove nothing.
    private static func unknownNames(resembling names: [String]) -> [String] {
        var made: Set<String> = []
        return names.map { name in
            var other = name
            repeat {
                other = String(name.map { $0.isNumber ? Character(String(Int.random(in: 5...9))) : $0 })
            } while names.contains(other) || !made.insert(other).inserted
            return other
        }
    }
}
