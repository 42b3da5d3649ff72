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
        case (.ladder, .reference), (.tokens, .reference), (.token, _), (.openRoute, _):
            "nothing is signed that could be read in two ways"
        default: nil
        }
    }

    func run(on stage: Stage) async throws -> Outcome {
        var tried = 0
        var (fell, held): ([String], [String]) = ([], [])
        for ambiguity in stage.craft.ambiguities {
            // Each on a victim of its own: one who was robbed already might have nothing left to lose to the next.
            let tampering = try await Tampering(on: stage)
            switch try await attempt(ambiguity, tampering) {
            case .refused: return stage.appRefuses
            case .tried(let count, nil) where count > 0:
                tried += count
                try await stage.requireService(to: tampering.victim)
                held.append(ambiguity.name)
            case .tried(_, let gain?): fell.append(gain)
            case .tried: stage.note(.attacker, "lacks something for \(ambiguity.name)")
            }
        }
        let others = held.isEmpty ? "" : "; refused or without effect: \(held.joined(separator: ", "))"
        if !fell.isEmpty { return .succeeded(fell.joined(separator: "; ") + others) }
        guard tried > 0 else { throw StageFault("the scheme's two readings gave nothing to try") }
        return .failed(
            "\(tried) requests of two readings, each refused or without effect: \(held.joined(separator: ", "))")
    }

    private enum Attempt {
        /// The app refused to talk to the attacker.
        case refused
        /// How many requests were sent, none where the attacker lacks something for them, and what one of them brought.
        case tried(Int, String?)
    }

    private enum Bait {
        case refused, lacking
        case request(RawRequest)
    }

    /// Each variant on a request of its own: one that is let through without harm uses up its nonce.
    private func attempt(_ ambiguity: Ambiguity, _ tampering: Tampering) async throws -> Attempt {
        var tried = 0
        while true {
            switch try await bait(ambiguity, tampering, extra: tried) {
            case .refused: return .refused
            case .lacking: return .tried(tried, nil)
            case .request(let request):
                let variants = ambiguity.apply(request, tampering.theft)
                guard tried < variants.count else { return .tried(tried, nil) }
                let change = Tampering.Change("\(ambiguity.name): \(ambiguity.sentence)", variants[tried])
                if let gain = try await tampering.gain(by: change, insteadOf: .transfer, extra: tried) {
                    return .tried(tried + 1, gain)
                }
                tried += 1
            }
        }
    }

    /// What is changed.
    private func bait(_ ambiguity: Ambiguity, _ tampering: Tampering, extra: Int) async throws -> Bait {
        let (stage, theft) = (tampering.stage, tampering.theft)
        switch ambiguity.bait {
        case .victimsTransfer:
            guard let held = try await tampering.held(.transfer, extra: extra) else { return .refused }
            return .request(held)
        case .ownTransfer(let payee):
            guard let token = try await victimsToken(tampering) else { return .refused }
            guard let typed = payee(theft, token.heard) else { return .lacking }
            let own = try await stage.customer()
            let held = try await stage.held(RawRequest.transferPath) { () async throws(VictimProblem) in
                try await own.transfer(theft.amount, to: typed)
            }
            guard let held else { return .refused }
            return .request(held)
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
