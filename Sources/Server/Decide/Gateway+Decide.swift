import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// Answers another proxy that asks whether it may let a request through. 200 means yes; every refusal is 401
/// or 403, for other statuses some proxies take for an error of ours, or for yes. Source: docs/protocol.md,
/// "Decide".
extension Gateway {
    func decide(
        _ decider: Decider, _ exchange: any Exchange, _ request: Request, _ judgement: Judgement,
        _ event: inout RequestEvent
    ) async {
        do throws(Refusal) {
            guard decider.isAllowed(request) else {
                throw Refusal(.forbidden, "decide: a trusted proxy does not show the secret of decide-secret")
            }
            try decider.checkFields(of: request)
            var original = try decider.original(of: request, over: request.proxiedTransport)
            event.original = AskedRequest(original)
            let answer = try await decision(on: &original, exchange, judgement, &event)
            await exchange.respond(answer)
        } catch {
            event.refusal = error
            tally.refuse(error.code, named: judgement.release)
            await exchange.respond(Gateway.answer(error, event.id, now: clock.now))
        }
    }

    private func decision(
        on original: inout Request, _ exchange: any Exchange, _ judgement: Judgement, _ event: inout RequestEvent
    ) async throws(Refusal) -> Answer {
        guard case .elsewhere = routes.find(original) else {
            throw Refusal(.forbidden, "decide: the authority's own routes must be sent to it")
        }
        if original.names.contains(.countersignTicket) {
            throw Refusal(
                .decideNeedsBody,
                "an upload ticket is bound to a body, which decide does not see: send it through the gateway itself")
        }
        if let legacy = routes.legacy, try legacy.mayBeCalled(by: original, keeping: &legacyScreen) {
            throw Gateway.needsBody
        }
        let caller: Caller
        do throws(Refusal) {
            try await judgeProof(of: &original, exchange, judgement)
            caller = try await gate.judge(original, judgement, from: { network(of: exchange) })
        } catch {
            guard let passage = try gate.passage(of: original, judgement, after: error) else { throw error }
            event.passage = passage
            tally.pass(passage)
            return Gateway.allowed(
                identity.lines(for: passage, sending: original, over: exchange, event: event.id),
                checked: "nothing")
        }
        event.caller = caller
        tally.accept(caller.release, under: caller.edition)
        let lines = try identity.lines(
            for: caller, sending: original, leaving: [], over: exchange, event: event.id, at: clock.now)
        return Gateway.allowed(lines, checked: Gateway.checked(caller.body))
    }

    /// Sees to it that what is judged needs no body: where the proof lies in one, only the gateway itself can
    /// tell.
    private func judgeProof(
        of original: inout Request, _ exchange: any Exchange, _ judgement: Judgement
    ) async throws(Refusal) {
        if original.isSafe { return }
        if original.names.contains(.signatureInput) {
            // What covers a digest vouches for that, and the body is the backend's to compare with it.
            guard original.names.contains(.contentDigest) else { return }
            (original.bodyState, original.framing) = (.streaming, .length(1))
            return
        }
        (original.bodyState, original.framing) = (.awaited, .length(1))
        do throws(Refusal) {
            try await gate.judgeHead(of: original, judgement, from: { network(of: exchange) })
        } catch {
            // Unsigned, as far as the head tells.
            if error.code == .unsigned { (original.bodyState, original.framing) = (.whole, .none) }
            throw error
        }
        guard judgement.isProvenByHead else { throw Gateway.needsBody }
        original.bodyState = .streaming
    }

    private static let needsBody = Refusal(
        .decideNeedsBody, "its proof lies in its body, which decide does not see: send it through the gateway itself")

    /// What was looked at, so that nobody takes more for granted.
    private static func checked(_ body: BodyExpectation) -> String {
        switch body {
        case .digests, .md5: "head; body=digest"
        default: "head; body=unseen"
        }
    }

    /// What only we say of a caller (of parts of a body, which is not seen here, nothing). All are in each
    /// answer, empty where there is nothing to say: a proxy that puts them in the place of what the caller
    /// sent then leaves none of those.
    private static let identityFields = [
        "Countersign-App", "Countersign-Release", "Countersign-Platform", "Countersign-Version", "Countersign-Scheme",
        "Countersign-Account", "Countersign-Session", "Countersign-Client", "Countersign-Event", "Countersign-Verdict",
        "Countersign-Assertion",
    ]

    /// `lines` are those that a backend would be sent.
    private static func allowed(_ lines: [UInt8], checked: String) -> Answer {
        var said: [String: String] = [:]
        for line in String(decoding: lines, as: UTF8.self).split(separator: "\r\n") {
            guard let colon = line.firstIndex(of: ":") else { continue }
            said[String(line[..<colon])] = String(line[colon...].dropFirst(2))
        }
        return Answer(
            status: 200, type: "text/plain",
            fields: [Answer.Field("Cache-Control", "no-store"), Answer.Field("Countersign-Checked", checked)]
                + identityFields.map { Answer.Field($0, said[$0] ?? "") },
            body: Array("allowed\n".utf8))
    }

    private static func answer(_ refusal: Refusal, _ event: EventID, now: Int64) -> Answer {
        var answer = RefusalAnswer.make(refusal, dialect: .problem, .code, event: event, now: now)
        answer.status = refusal.code.status == 401 ? 401 : 403
        answer.fields.append(Answer.Field("Countersign-Refusal", refusal.code.name))
        return answer
    }
}

extension Judgement {
    /// Whether its proof is in the head alone: a signature over no more than a digest of the body, or a
    /// token.
    fileprivate var isProvenByHead: Bool { claim.map { $0.base == .head } ?? (tokenRelease != nil) }
}
