/// Uses the ambiguities of each scheme.
struct TamperAmbiguityAttack: Attack {
    let name: AttackName = "tamper-ambiguity"
    let column = Column.tamper
    let sentence = """
        Changes a transfer by what its scheme reads in two ways: & in values, names twice or in other \
        letters, what stands behind a NUL, an MD5 carried on, parts that nothing signs.
        """

    func exemption(of row: RowProfile) -> String? {
        switch (row.scheme, row.server) {
        case (.ladder, .reference), (.tokens, .reference), (.token, _), (.openRoute, _):
            "nothing is signed that could be read in two ways"
        default: nil
        }
    }

    func run(on stage: Stage) async throws -> AttackOutcome {
        var tried = 0
        var (fell, held): ([String], [String]) = ([], [])
        for ambiguity in stage.attackKit.ambiguities {
            // A new victim for each: one that was robbed might have no money left for the next.
            let tampering = try await TamperScenario(on: stage)
            switch try await attempt(ambiguity, tampering: tampering) {
            case .refused: return stage.appRefusesCertificate
            case .tried(let count, nil) where count > 0:
                tried += count
                try await stage.requireService(to: tampering.victim)
                held.append(ambiguity.name)
            case .tried(_, let gain?): fell.append(gain)
            case .tried: stage.note(.attacker, action: "lacks something for \(ambiguity.name)")
            }
        }
        let others = held.isEmpty ? "" : "; refused or without effect: \(held.joined(separator: ", "))"
        if !fell.isEmpty { return .succeeded(fell.joined(separator: "; ") + others) }
        guard tried > 0 else { throw LabError("the scheme's two readings gave nothing to try") }
        return .failed(
            "\(tried) requests of two readings, each refused or without effect: "
                + "\(held.joined(separator: ", "))"
        )
    }

    private enum Attempt {
        /// The app refused the attacker's certificate.
        case refused
        /// The number of requests that were sent, none where the attacker lacks something for them, and the
        /// gain of the last.
        case tried(Int, String?)
    }

    private enum SourceRequest {
        case refused, lacking
        case request(RawRequest)
    }

    /// Each variant on a request of its own: a harmless variant that the server accepts uses up the nonce.
    private func attempt(_ ambiguity: Ambiguity, tampering: TamperScenario) async throws -> Attempt {
        var tried = 0
        while true {
            switch try await sourceRequest(for: ambiguity, tampering: tampering, extra: tried) {
            case .refused: return .refused
            case .lacking: return .tried(tried, nil)
            case .request(let request):
                let variants = ambiguity.apply(request, tampering.theft)
                guard tried < variants.count else { return .tried(tried, nil) }
                let change = TamperScenario.Change(
                    "\(ambiguity.name): \(ambiguity.sentence)", request: variants[tried])
                if let gain = try await tampering.gain(by: change, insteadOf: .transfer, extra: tried) {
                    return .tried(tried + 1, gain)
                }
                tried += 1
            }
        }
    }

    /// The request that the ambiguity changes.
    private func sourceRequest(for ambiguity: Ambiguity, tampering: TamperScenario, extra: Int) async throws
        -> SourceRequest
    {
        let (stage, theft) = (tampering.stage, tampering.theft)
        switch ambiguity.source {
        case .victimsTransfer:
            guard let held = try await tampering.interceptedRequest(.transfer, extra: extra) else {
                return .refused
            }
            return .request(held)
        case .ownTransfer(let payee):
            guard let token = try await victimsToken(tampering) else { return .refused }
            guard let typed = payee(theft, token.captured) else { return .lacking }
            let own = try await stage.customer()
            let held = try await stage.interceptRequest(to: RawRequest.transferPath) {
                () async throws(VictimError) in
                try await own.transfer(theft.amount, to: typed)
            }
            guard let held else { return .refused }
            return .request(held)
        }
    }

    /// The victim's token as the attacker recorded it; nil where the app refused the attacker's certificate.
    private func victimsToken(_ tampering: TamperScenario) async throws -> (captured: CapturedToken?, Void)? {
        let victim = tampering.victim
        let exchanges = try await tampering.stage.captureExchanges { () async throws(VictimError) in
            _ = try await victim.balance()
        }
        guard let exchanges else { return nil }
        return (exchanges.lazy.compactMap { tampering.stage.attackKit.token(in: $0) }.first, ())
    }
}
