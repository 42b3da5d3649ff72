extension Trust {
    /// Whether to go on with this server. Called in the handshake.
    public func judge(_ evidence: Trust.Evidence) -> Trust.Verdict {
        let rules = rules(for: evidence.host)
        guard !rules.isEmpty else {
            switch others {
            case .refused: return Trust.Verdict(evidence, .refused, [.hostNotNamed], expected: [])
            case .system:
                let reasons = Trust.Policy.system.objections(to: evidence)
                return Trust.Verdict(evidence, reasons.isEmpty ? .accepted : .refused, reasons, expected: [])
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
        return Trust.Verdict(evidence, decision, reasons, expected: rules.flatMap(\.policy.pins))
    }
}

extension Trust.Policy {
    /// What is not as the policy wants it; nothing where all is.
    func objections(to evidence: Trust.Evidence) -> [Trust.Verdict.Reason] {
        switch kind {
        case .anything: return []
        case .all(let policies):
            return policies.reduce(into: []) { all, policy in
                all += policy.objections(to: evidence).filter { [all] in !all.contains($0) }
            }
        case .one(let demand, let chain, let name):
            // Without a certificate there is nothing that could be checked, whatever is left out.
            guard let leaf = evidence.served.first else { return [.chain(.noCertificate)] }
            var reasons =
                chain == .checked ? demand.objections(to: evidence) : demand.objections(toLeaf: evidence, leaf)
            if name == .checked, !leaf.isFor(evidence.host) {
                reasons.append(.wrongHost(certificateIsFor: leaf.names.map(\.description)))
            }
            // A check of one's own sees what has passed the others only.
            if reasons.isEmpty, case .custom(let name, let judge) = demand, case .refuse(let why) = judge(evidence) {
                reasons.append(.custom(name: name, reason: why))
            }
            return reasons
        }
    }

    /// The pins it names.
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
    /// Over the chain that was verified: of what the server merely sent, nothing but its own key is proven.
    fileprivate func objections(to evidence: Trust.Evidence) -> [Trust.Verdict.Reason] {
        do throws(Trust.PathProblem) {
            switch self {
            case .nothingMore:
                _ = try evidence.path(to: .system)
                return []
            case .custom(let name, _):
                do throws(Trust.PathProblem) {
                    _ = try evidence.path(to: .system)
                    return []
                } catch {
                    return [.customNotReached(name: name, error)]
                }
            case .certificates(let certificates):
                do throws(Trust.PathProblem) {
                    _ = try evidence.path(to: .only(certificates))
                    return []
                } catch {
                    return [.certificateNotPinned(error)]
                }
            case .pins(let set):
                // Nobody vouches for a certificate that signs itself, so its own pinned key has to; dates and strength
                // are checked none the less.
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

    fileprivate func objections(toLeaf evidence: Trust.Evidence, _ leaf: Trust.Certificate) -> [Trust.Verdict.Reason] {
        switch self {
        case .nothingMore, .custom: []
        case .certificates(let certificates):
            certificates.contains(leaf) ? [] : [.serverCertificateNotPinned]
        case .pins(let set): set.all.contains(leaf.pin) ? [] : [.serverKeyNotPinned]
        }
    }
}
