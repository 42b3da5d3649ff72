extension Stage {
    /// Somebody who is signed in and can see his money. Throws where he cannot although nobody attacks.
    func signedInVictim() async throws -> any Victim {
        let victim = try await newVictim()
        do {
            try await victim.signIn()
            let seen = try await victim.balance()
            guard seen == Bank.opening else {
                throw StageFault("\(row.name): \(victim.name) sees \(seen) on a new account")
            }
        } catch let problem as VictimProblem {
            throw StageFault("\(row.name): \(victim.name) cannot use the app although nobody attacks: \(problem)")
        }
        note(.victim, row.hasPasswords ? "signs in, and looks at the balance" : "looks at the balance")
        return victim
    }

    /// The victim's money to the thief.
    func order(from victim: any Victim) -> Order { Order(payer: victim.name, payee: thief, amount: Stage.prize) }

    /// What is taken at a time: little enough that there is always more.
    static let prize = 7

    /// Sends it, and tells whether the thief has more than before. Noted where it did come about, or `did` is given.
    // Inlined into loops, it takes the compiler down in optimised builds (6.3.1).
    @inline(never)
    func brings(_ request: RawRequest, noting did: String? = nil) async throws -> Bool {
        let before = try bank.balance(of: thief)
        let response = try await network.send(request)
        let gain = try bank.balance(of: thief) - before
        if let did = did ?? (gain > 0 ? "orders a transfer in the victim's name" : nil) {
            note(.attacker, did, showing: request.shown)
            note(.server, gain > 0 ? "moves \(gain) to the thief" : "answers", showing: response.shown)
        }
        return gain > 0
    }

    /// Signs in, and takes money with what the answer gives. Nil where the server does not let him in; else what it said to the theft.
    @inline(never)
    func signsIn(with login: RawRequest, as victim: any Victim) async throws -> SignIn {
        let response = try await network.send(login)
        guard let token = craft.token(from: response) else { return .refused(response) }
        note(.attacker, "signs in as the victim", showing: login.shown)
        note(.server, "lets him in", showing: response.shown)
        guard let transfer = craft.transfer(order(from: victim), token: token, key: appKey) else {
            throw StageFault("\(row.name): expected a token to be enough for a transfer")
        }
        return try await brings(transfer) ? .paid : .letIn
    }
}

/// What came of a login that was not the user's.
enum SignIn {
    case refused(RawResponse)
    /// And yet no money moved.
    case letIn
    case paid
}
