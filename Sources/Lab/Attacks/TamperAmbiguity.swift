/// Each scheme's own two readings.
struct TamperAmbiguity: Attack {
    let name: AttackName = "tamper-ambiguity"
    let column = Column.tamper
    let sentence = """
        Changes a transfer by what its scheme reads in two ways: & in values, names twice or in other letters, \
        what stands behind a NUL, an MD5 carried on, parts that nothing signs.
        """

    func exemption(of row: RowProfile) -> String? {
        switch (row.scheme, row.server) {
        case (.ladder, .reference), (.tokens, .reference): "nothing is signed that could be read in two ways"
        default: nil
        }
    }

    func run(on stage: Stage) async throws -> Outcome {
        let tampering = try await Tampering(on: stage)
        var tried = 0
        for ambiguity in stage.craft.ambiguities {
            guard let (order, request) = try await bait(ambiguity, tampering) else {
                if tried == 0 { return stage.appRefuses }
                continue
            }
            for changed in ambiguity.apply(request, order) {
                tried += 1
                let change = Tampering.Change("\(ambiguity.name): \(ambiguity.sentence)", changed)
                if let gain = try await tampering.gain(by: change, insteadOf: .transfer) { return .succeeded(gain) }
            }
        }
        guard tried > 0 else { throw StageFault("the scheme's two readings gave nothing to try") }
        try await stage.requireService(to: tampering.victim)
        return .failed("\(tried) requests of two readings, each refused or without effect")
    }

    /// What is changed. Nil where the app refused to talk to the attacker, or he lacks something for it.
    private func bait(_ ambiguity: Ambiguity, _ tampering: Tampering) async throws -> (Order, RawRequest)? {
        let (stage, theft) = (tampering.stage, tampering.theft)
        switch ambiguity.bait {
        case .victimsTransfer: return try await tampering.held(.transfer).map { (theft, $0) }
        case .ownTransfer(let payee):
            guard let token = try await victimsToken(tampering), let typed = payee(theft, token.heard) else {
                return nil
            }
            let own = try await stage.customer()
            let held = try await stage.held(RawRequest.transferPath) { () async throws(VictimProblem) in
                try await own.transfer(theft.amount, to: typed)
            }
            return held.map { (theft, $0) }
        }
    }

    /// What the attacker has heard of the victim's session; nil where the app refuses him.
    private func victimsToken(_ tampering: Tampering) async throws -> (heard: CapturedToken?, Void)? {
        let victim = tampering.victim
        let exchanges = try await tampering.stage.captured { () async throws(VictimProblem) in
            _ = try await victim.balance()
        }
        guard let exchanges else { return nil }
        return (exchanges.lazy.compactMap { tampering.stage.craft.token(in: $0) }.first, ())
    }
}
