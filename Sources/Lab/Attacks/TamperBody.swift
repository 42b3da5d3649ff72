import CountersignSeal
import CountersignWire

/// What stands in the body.
struct TamperBody: Attack {
    let name: AttackName = "tamper-body"
    let column = Column.tamper
    let sentence = """
        Changes the payee in the body of the victim's transfer: with every digest as it was, with digests that \
        fit, and with none.
        """

    func exemption(of row: RowProfile) -> String? { nil }

    func run(on stage: Stage) async throws -> Outcome {
        let tampering = try await Tampering(on: stage)
        let theft = tampering.theft
        return try await tampering.outcome(of: [.transfer { changes($0, theft) }])
    }

    private func changes(_ request: RawRequest, _ theft: Order) -> [Tampering.Change] {
        let changed = request.paying(theft.payee)
        var bare = changed
        for field in ["Content-Digest", "X-Amz-Content-Sha256", "Content-MD5"] { bare.fields[field] = nil }
        var replaced = request
        let order = RawRequest.transfer(form: theft, namingThePayer: theft.payer)
        replaced.body =
            request.members == nil ? order.body : RawRequest.transfer(json: theft, namingThePayer: theft.payer).body
        return [
            .init("changes the payee in the body", changed),
            .init("changes the payee, and every digest of the body with it", redigested(changed)),
            .init("changes the payee, and takes digests off", bare),
            .init("puts another order in place of the body", replaced),
            .init("puts another order in place of the body, with digests that fit", redigested(replaced)),
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
