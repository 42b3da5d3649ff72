extension Trust {
    /// Decides whether to continue with this server. Called during the handshake.
    public func judge(_ evidence: Trust.Evidence) -> Trust.Verdict {
        let rules = rules(for: evidence.host)
        guard !rules.isEmpty else {
            switch others {
            case .refused:
                return Trust.Verdict(evidence, decision: .refused, reasons: [.hostNotNamed], expected: [])
            case .system:
                let reasons = Trust.Policy.system.objections(to: evidence)
                return Trust.Verdict(
                    evidence, decision: reasons.isEmpty ? .accepted : .refused, reasons: reasons, expected: []
                )
            }
        }
        var decision = Trust.Verdict.Decision.accepted
        var reasons: [Trust.Verdict.Reason] = []
        for rule in rules {
            let found = rule.policy.objections(to: evidence)
            guard !found.isEmpty else { continue }
            reasons += found.filter { !reasons.contains($0) }
            if rule.mode == .reportOnly, Trust.Policy.system.objections(to: evidence).isEmpty {
                if decision == .accepted { decision = .reported }
            } else {
                decision = .refused
            }
        }
        return Trust.Verdict(
            evidence, decision: decision, reasons: reasons, expected: rules.flatMap(\.policy.pins))
    }
}

extension Trust.Policy {
    /// The violations of the policy; empty if the server meets it.
    func objections(to evidence: Trust.Evidence) -> [Trust.Verdict.Reason] {
        switch kind {
        case .anything: return []
        case .all(let policies):
            return policies.reduce(into: []) { all, policy in
                all += policy.objections(to: evidence).filter { [all] in !all.contains($0) }
            }
        case .one(let demand, let chain, let name):
            // Without a certificate nothing can be checked, whichever checks are omitted.
            guard let leaf = evidence.served.first else { return [.chain(.noCertificate)] }
            var reasons =
                chain == .checked
                ? demand.objections(to: evidence) : demand.objections(to: evidence, leaf: leaf)
            if name == .checked, !leaf.isFor(evidence.host) {
                reasons.append(.wrongHost(certificateIsFor: leaf.names.map(\.description)))
            }
            // A custom check runs only if all other checks passed.
            if reasons.isEmpty, case .custom(let name, let judge) = demand,
                case .refuse(let why) = judge(evidence)
            {
                reasons.append(.custom(name: name, reason: why))
            }
            return reasons
        }
    }

    /// The pins in the policy.
    package var pins: [Trust.Pin] {
        switch kind {
        case .one(.pins(let set), _, _): set.all
        case .one(.certificates(let certificates), _, _): certificates.map(\.pin)
        case .all(let policies): policies.flatMap(\.pins)
        case .one, .anything: []
        }
    }
}

extension Trust.Policy.Demand {
    /// Checks the verified chain: of the certificates that the server only sent, none but its own is proven.
    fileprivate func objections(to evidence: Trust.Evidence) -> [Trust.Verdict.Reason] {
        do {
            switch self {
            case .nothingMore:
                _ = try evidence.path(to: .system)
                return []
            case .custom(let name, _):
                do {
                    _ = try evidence.path(to: .system)
                    return []
                } catch {
                    return [.customNotReached(name: name, error)]
                }
            case .certificates(let certificates):
                do {
                    _ = try evidence.path(to: .only(certificates))
                    return []
                } catch {
                    return [.certificateNotPinned(error)]
                }
            case .pins(let set):
                // No authority vouches for a self-signed certificate, so its own key must be pinned; its
                // dates and strength are checked too.
                if let leaf = evidence.served.first, leaf.isSelfIssued, set.all.contains(leaf.pin) {
                    _ = try evidence.path(to: .only([leaf]))
                    return []
                }
                let path = try evidence.path(to: .system)
                return path.contains { set.all.contains($0.pin) } ? [] : [.pinNotMet]
            }
        } catch {
            return [.chain(error)]
        }
    }

    fileprivate func objections(to evidence: Trust.Evidence, leaf: Trust.Certificate) -> [Trust.Verdict
        .Reason]
    {
        switch self {
        case .nothingMore, .custom: []
        case .certificates(let certificates):
            certificates.contains(leaf) ? [] : [.serverCertificateNotPinned]
        case .pins(let set): set.all.contains(leaf.pin) ? [] : [.serverKeyNotPinned]
        }
    }
}

extension Trust {
    /// Whether only the holder of a named key is accepted for `host`: a certificate from one of the machine's
    /// authorities is not enough.
    package func isPinned(_ host: Trust.Host) -> Bool {
        rules(for: host).contains { $0.mode == .enforce && $0.policy.isPinning }
    }
}

extension Trust.Policy {
    /// A pinned authority issues certificates for many hosts, so the name must be checked unless the pinned
    /// key is the server's own.
    fileprivate var isPinning: Bool {
        switch kind {
        case .one(.pins, let chain, let name), .one(.certificates, let chain, let name):
            name == .checked || chain == .unchecked
        case .all(let policies): policies.contains(where: \.isPinning)
        case .one, .anything: false
        }
    }
}
