import CountersignSeal
import CountersignWire

/// Adds fields that the app did not sign and that a component behind the gateway may act on.
struct TamperHeaderAttack: Attack {
    let name: AttackName = "tamper-header"
    let column = Column.tamper
    let sentence = """
        Adds fields to a signed request: whose account it is about, as gateways tell backends; another type \
        for its body; another's session beside the genuine one.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let accomplice = try await stage.customer()
        let tampering = try await TamperScenario(on: stage)
        let (victim, thief) = (tampering.victim, stage.thief)
        var requests: [RawRequest] = []
        for _ in TamperHeaderAttack.claims(victim.name) {
            let held = try await stage.interceptRequest(to: RawRequest.transferPath) {
                () async throws(VictimError) in
                try await accomplice.transfer(TamperScenario.stolenAmount, to: thief)
            }
            guard let held else { return stage.appRefusesCertificate }
            requests.append(held)
        }
        for (claim, request) in zip(TamperHeaderAttack.claims(victim.name), requests) {
            var claiming = request
            claiming.fields.lines.append(.init(name: claim.name, value: claim.value))
            let before = try stage.bank.balance(of: victim.name)
            let did = "claims an identity in a field of its own request: \(claim.name)"
            _ = try await stage.attack(did, request: claiming)
            let lost = before - (try stage.bank.balance(of: victim.name))
            if lost > 0 { return .succeeded("\(did): the victim paid \(lost)") }
        }
        let theft = tampering.theft
        return try await tampering.outcome(of: [.transfer { contentTypeChanges(to: $0, theft: theft) }])
    }

    private static func claims(_ name: String) -> [RawFields.Line] {
        ["Countersign-Account", "Countersign_Account"].map { .init(name: $0, value: "name:\(name)") }
            + ["X-Forwarded-User", "X-User"].map { .init(name: $0, value: name) }
    }

    /// Two readings of the body: the genuine one as text, and another order where a parser of forms or JSON
    /// finds it.
    private func contentTypeChanges(to request: RawRequest, theft: TransferOrder) -> [TamperScenario.Change] {
        var (typed, overridden) = (request, request)
        typed.fields.lines.append(.init(name: "Content-Type", value: "text/plain"))
        typed.queryForm = RawRequest.transfer(form: theft, namingThePayer: nil).bodyForm ?? RawForm([])
        overridden.fields["Content-Type"] = "text/plain"
        overridden.queryForm = typed.queryForm
        return [
            .init("says a second time of which type the body is, and orders in the query", request: typed),
            .init("says that the body is plain text, and orders in the query", request: overridden),
        ]
    }
}

/// Changes the body.
struct TamperBodyAttack: Attack {
    let name: AttackName = "tamper-body"
    let column = Column.tamper
    let sentence = """
        Changes the payee in the body of the victim's transfer: with every digest as it was, with digests \
        that fit, and with none.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let tampering = try await TamperScenario(on: stage)
        let theft = tampering.theft
        return try await tampering.outcome(of: [.transfer { changes(to: $0, theft: theft) }])
    }

    private func changes(to request: RawRequest, theft: TransferOrder) -> [TamperScenario.Change] {
        let changed = request.paying(theft.payee)
        var bare = changed
        for field in ["Content-Digest", "X-Amz-Content-Sha256", "Content-MD5"] { bare.fields[field] = nil }
        var replaced = request
        let order = RawRequest.transfer(form: theft, namingThePayer: theft.payer)
        replaced.body =
            request.members == nil
            ? order.body : RawRequest.transfer(json: theft, namingThePayer: theft.payer).body
        return [
            .init("changes the payee in the body", request: changed),
            .init("changes the payee, and every digest of the body with it", request: redigested(changed)),
            .init("changes the payee, and takes digests off", request: bare),
            .init("puts another order in place of the body", request: replaced),
            .init(
                "puts another order in place of the body, with digests that fit",
                request: redigested(replaced)),
        ]
    }

    private func redigested(_ request: RawRequest) -> RawRequest {
        var copy = request.digested()
        if copy.fields["X-Amz-Content-Sha256"] != nil {
            copy.fields["X-Amz-Content-Sha256"] = Hex.encode(SHA256.digest(copy.body.span).span)
        }
        return copy
    }
}

/// Passes requests on from a host of the attacker's with a valid certificate, to which a link, a setting or a
/// forged DNS answer led the app.
struct TamperHostAttack: Attack {
    let name: AttackName = "tamper-host"
    let column = Column.tamper
    let sentence = """
        Leads the app to a host of the attacker's, and passes its requests on to the server as they are: is \
        what was meant for one host taken at another?
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let known = try await stage.customer()
        let shop = try stage.newShop()
        let door = try stage.network.openAttackerHost()
        defer { door.stop() }
        var device = DeviceSetup()
        device.host = door.host
        device.origin = "\(stage.row.transport == .plain ? "http" : "https")://\(door.host):\(door.port)"
        stage.note(.attacker, action: "leads the app to \(device.origin ?? "")")
        let led: any Victim
        do {
            led = try await stage.newVictim(device)
        } catch let error as LabError where error.description.contains("no rule covers \(door.host)") {
            // The app's pins are for the server's host only, and the SDK refuses to begin with another.
            try await stage.requireService(to: known)
            return .failed("the app does not begin: \(error)")
        }
        var problem: VictimError?
        do {
            try await led.signIn()
            try await led.transfer(TamperScenario.intendedAmount, to: shop)
        } catch {
            problem = error
        }
        let seen = door.interception
        for exchange in seen.exchanges.prefix(4) {
            stage.note(.victim, action: "sends to the attacker's host", showing: exchange.request.shown)
            if let answer = exchange.response {
                stage.note(.server, action: "answers", showing: answer.shown)
            }
        }
        if try stage.bank.balance(of: shop) > Bank.openingBalance {
            return .succeeded(
                "a transfer that was meant for \(door.host) was made, and the attacker read all of it")
        }
        try await stage.requireService(to: known)
        guard let problem else {
            throw LabError("the app believes that it has paid, and the bank knows nothing of it")
        }
        guard seen.requests > 0 else { return .failed("the app does not talk to \(door.host): \(problem)") }
        return .failed("\(seen.requests) requests passed on, none of them taken by the server: \(problem)")
    }
}

/// Sends the fields that tell backends the caller's identity, without account, token or key.
struct ForgedIdentityAttack: Attack {
    let name: AttackName = "forged-identity"
    let column = Column.tamper
    let sentence = """
        Orders transfers without token and signature, in requests whose fields say, as a gateway does, that \
        the victim sends them.
        """

    func exemption(of row: RowProfile) -> String? {
        row.server == .reference ? "no gateway stands before this server, and it believes no such field" : nil
    }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let victim = try await stage.signedInVictim()
        let requests = ForgedIdentityAttack.requests(stage.theftOrder(from: victim))
        for (index, request) in requests.enumerated() {
            let did = index == 0 ? "has no account, and claims in a field to be the victim" : nil
            if try await stage.paysThief(request, noting: did) {
                return .succeeded(
                    "a request without token or signature moved the victim's money, by what its fields say")
            }
        }
        try await stage.requireService(to: victim)
        return .failed("\(requests.count) requests that say whose they are: none was taken for the victim's")
    }

    /// Each spelling alone and with the other fields of a genuine identity, as a form and as JSON.
    private static func requests(_ order: TransferOrder) -> [RawRequest] {
        let spellings = [
            "Countersign-Account", "Countersign_Account", "countersign-account", "COUNTERSIGN-ACCOUNT",
            "Countersign_account",
        ]
        let beside = [
            ("Countersign-App", BankApp.name), ("Countersign-Scheme", "message-signatures"),
            ("Countersign-Release", "r_known"), ("Countersign-Verdict", "signed"),
            ("Connection", "countersign-app"),
        ]
        return spellings.flatMap { spelling in
            [
                RawRequest.transfer(form: order, namingThePayer: nil),
                RawRequest.transfer(json: order, namingThePayer: nil),
            ].flatMap { plain in
                var alone = plain
                alone.fields.lines.append(.init(name: spelling, value: "name:\(order.payer)"))
                var whole = alone
                for (name, value) in beside { whole.fields.lines.append(.init(name: name, value: value)) }
                return [alone, whole]
            }
        }
    }
}
