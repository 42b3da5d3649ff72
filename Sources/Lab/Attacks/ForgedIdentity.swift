/// Who calls, told by the caller: fields by which gateways tell backends, from somebody who has no account, no token
/// and no key.
struct ForgedIdentity: Attack {
    let name: AttackName = "forged-identity"
    let column = Column.tamper
    let sentence = """
        Orders transfers without token and signature, in requests whose fields say, as a gateway does, that the \
        victim sends them.
        """

    func exemption(of row: RowProfile) -> String? {
        row.server == .reference ? "no gateway stands before this server, and it believes no such field" : nil
    }

    func run(on stage: Stage) async throws -> Outcome {
        let victim = try await stage.signedInVictim()
        let requests = ForgedIdentity.requests(stage.order(from: victim))
        for (index, request) in requests.enumerated() {
            let did = index == 0 ? "is nobody, and says in a field that he is the victim" : nil
            if try await stage.brings(request, noting: did) {
                return .succeeded(
                    "a request without token or signature moved the victim's money, by what its fields say")
            }
        }
        try await stage.requireService(to: victim)
        return .failed("\(requests.count) requests that say whose they are: none was taken for the victim's")
    }

    /// Each spelling alone, and with the other fields of a genuine identity beside it; as a form and as JSON.
    private static func requests(_ order: Order) -> [RawRequest] {
        let spellings = [
            "Countersign-Account", "Countersign_Account", "countersign-account", "COUNTERSIGN-ACCOUNT",
            "Countersign_account",
        ]
        let beside = [
            ("Countersign-App", Setting.app), ("Countersign-Scheme", "message-signatures"),
            ("Countersign-Release", "r_known"), ("Countersign-Verdict", "signed"), ("Connection", "countersign-app"),
        ]
        return spellings.flatMap { spelling in
            [
                RawRequest.transfer(form: order, namingThePayer: nil),
                RawRequest.transfer(json: order, namingThePayer: nil),
            ].flatMap { plain in
                var alone = plain
                alone.fields.lines.append(.init(spelling, order.payer))
                var whole = alone
                for (name, value) in beside { whole.fields.lines.append(.init(name, value)) }
                return [alone, whole]
            }
        }
    }
}
