import CountersignMemory
import CountersignWire

/// Lets one copy of a payment through, shows the app a refusal, and waits for the app to send the payment
/// again. Only a server that recognises the payment, and not only the message, can tell a second copy from a
/// second payment.
package struct RetryTrapAttack: Attack {
    package let name: AttackName = "retry-trap"
    package let column = Column.retryTrap
    package let sentence =
        "Lets one copy of a payment through, shows the app a refusal of another, and waits for it to be sent "
        + "again."

    package init() {}

    package func exemption(of row: RowProfile) -> String? { nil }

    package func run(on stage: Stage) async throws -> AttackOutcome {
        let victim = try await stage.newVictim()
        try await stage.requireSignInAndPayment(by: victim)
        var ends: [String] = []
        for (index, trap) in RetryTrapKind.allCases.enumerated() {
            // Each trap has an amount of its own, by which the bank's journal tells the payments apart.
            let amount = 11 + index
            let state = RetryTrapHandler { stage.note($0, action: $1, showing: $2) }
            stage.network.intercept { request, forward in state.handle(request, with: trap, forward: forward)
            }
            let said = await pay(through: trap, by: victim, amount: amount, on: stage)
            stage.network.stopIntercepting()
            if case .serverNotTrusted(let why) = said {
                stage.note(.victim, action: "does not take the attacker for the bank: \(why)")
                return .failed("the app refuses the certificate, and sends nothing")
            }
            guard state.isTriggered else { throw LabError("\(trap.rawValue): the payment did not pass") }
            if let why = state.unanswered {
                throw LabError("\(trap.rawValue): a copy was not answered: \(why)")
            }
            let times = try stage.bank.journal().count { $0.from == victim.name && $0.amount == amount }
            if times > 1 { return .succeeded("\(trap.sentence): the payment was made \(times) times") }
            guard times == 1 else {
                throw LabError("\(trap.rawValue): the copy that was let through was not done")
            }
            ends.append(
                "\(trap.rawValue): once, "
                    + "\(said.map { "the app says \($0)" } ?? "the app says that it is done")"
            )
        }
        return .failed(
            "the payment was made once, whatever the app was shown (\(ends.joined(separator: "; ")))")
    }

    /// Pays, and repeats the payment where the app reports a refusal. Where the app reports an unknown
    /// outcome, the victim checks the account instead of repeating the payment.
    private func pay(
        through trap: RetryTrapKind, by victim: any Victim, amount: Int, on stage: Stage
    ) async -> VictimError? {
        do {
            stage.note(
                .victim,
                action:
                    "pays \(amount) to the attacker for a purchase; in between, "
                    + "\(trap.sentence)"
            )
            try await victim.transfer(amount, to: stage.thief)
            return nil
        } catch {
            stage.note(.victim, action: "sees: \(error)")
            switch error {
            case .refused, .signedOut: break
            case .serverNotTrusted, .noAnswer, .notOfThisScheme: return error
            }
            do {
                if case .signedOut = error { try await victim.signIn() }
                await pause(stage.row)
                stage.note(.victim, action: "presses the button again")
                try await victim.repeatTransfer()
                return nil
            } catch {
                return error
            }
        }
    }

    /// A pause as a person makes it: some schemes give two equal calls within one second the same signature.
    private func pause(_ row: RowProfile) async {
        guard case .apiKey = row.scheme else { return }
        try? await Task.sleep(for: .milliseconds(1_050))
    }
}

/// What the app receives instead of the response to the copy that was let through.
enum RetryTrapKind: String, CaseIterable, Sendable {
    case secondCopy = "second copy"
    case spoiltCopy = "spoilt copy"
    case tokenRanOut = "token ran out"
    case silence

    var sentence: String {
        switch self {
        case .secondCopy: "one copy goes through, and the app is shown the answer to a second one"
        case .spoiltCopy: "one copy goes through, and the app is shown the refusal of one that was changed"
        case .tokenRanOut: "one copy goes through, and the app is told that its token ran out"
        case .silence: "one copy goes through, and the connection is cut"
        }
    }
}

/// Handles the requests of one trap: the first payment triggers it, everything else passes.
final class RetryTrapHandler: Sendable {
    private let triggered = Locked(false)
    private let failure = Locked<String?>(nil)
    private let note: @Sendable (AttackStep.Actor, String, String?) -> Void

    /// `note` records each step when it happens.
    init(_ note: @escaping @Sendable (AttackStep.Actor, String, String?) -> Void) { self.note = note }

    var isTriggered: Bool { triggered.with { $0 } }

    /// Why a copy of the payment was not answered; nil where all were. Without that response the app saw only
    /// silence, and the trap was not carried out.
    var unanswered: String? { failure.with { $0 } }

    func handle(
        _ request: RawRequest, with trap: RetryTrapKind, forward: (RawRequest) throws -> RawResponse
    ) -> RawResponse? {
        let isFirst = triggered.with { isSprung in
            defer { isSprung = isSprung || request.isTransfer }
            return request.isTransfer && !isSprung
        }
        guard isFirst else { return try? forward(request) }
        note(.victim, "sends", request.shown)
        guard let done = answer(to: request, by: forward) else { return nil }
        note(.server, "does it, and its answer is held back", done.shown)
        switch trap {
        case .silence: return nil
        case .tokenRanOut:
            let body = #"{"err":{"code":-101,"msg":"token expired"}}"#
            let lie = RawResponse(200, fields: [("Content-Type", "application/json")], body: Array(body.utf8))
            note(.attacker, "makes up an answer", lie.shown)
            return lie
        case .secondCopy:
            return recordResponse(
                answer(to: request, by: forward), action: "sends a second copy, and shows the app the answer")
        case .spoiltCopy:
            return recordResponse(
                answer(to: request.altered, by: forward),
                action: "sends a copy that was changed, and shows the app the answer")
        }
    }

    private func answer(to copy: RawRequest, by forward: (RawRequest) throws -> RawResponse) -> RawResponse? {
        do {
            return try forward(copy)
        } catch {
            failure.with { $0 = "\(error)" }
            return nil
        }
    }

    private func recordResponse(_ response: RawResponse?, action did: String) -> RawResponse? {
        note(.attacker, did, response?.shown)
        return response
    }
}

extension RawRequest {
    /// The request with another body and the same signature, so that a signed refusal refers to the signature
    /// that the app knows. Where no signature is sent, with another token.
    fileprivate var altered: RawRequest {
        var spoilt = self
        guard fields["signature"] == nil, let bearer = fields["authorization"], bearer.hasPrefix("Bearer ")
        else {
            spoilt.body.append(UInt8(ascii: "0"))
            return spoilt
        }
        spoilt.fields["authorization"] = bearer.dropLast() + (bearer.last == "a" ? "b" : "a")
        return spoilt
    }
}
