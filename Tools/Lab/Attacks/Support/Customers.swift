import CountersignSeal
import CountersignWire

/// The accounts that attacks need, and the check that the server serves them.
extension Stage {
    /// A new customer that is signed in and has read the balance: a server that serves no request must not
    /// look like one that resists the attack.
    package func customer(_ device: DeviceSetup = DeviceSetup()) async throws -> any Victim {
        let victim = try await newVictim(device)
        do {
            try await victim.signIn()
        } catch {
            throw LabError("\(victim.name) cannot sign in without an attack: \(error)")
        }
        try await requireService(to: victim)
        return victim
    }

    /// Throws where the server does not serve the victim without an attack: then the observations mean
    /// nothing.
    package func requireService(to victim: any Victim) async throws {
        do {
            _ = try await victim.balance()
        } catch {
            throw LabError("\(victim.name) is not served without an attack: \(error)")
        }
    }

    /// A new account at the bank to which customers pay.
    package func newShop() throws -> String {
        // Customers' numbers are small and consecutive; a shop's is random.
        let number = SystemRandom().bytes(6).reduce(Int64(1)) { $0 << 8 | Int64($1) }
        try bank.open(name: "shop\(number)", userID: number)
        return "shop\(number)"
    }

    /// The thief's current balance, to be compared later.
    package func thiefBalance() throws -> Int { try bank.balance(of: thief) }
}

extension Stage {
    /// Signs in and pays 1; the victim stays signed in. Throws where that fails without an attack: then a
    /// later failure is not a defence.
    func requireSignInAndPayment(by victim: any Victim) async throws {
        let before = try bank.balance(of: victim.name)
        do {
            try await victim.signIn()
            try await victim.transfer(1, to: thief)
        } catch {
            throw LabError("\(victim.name) cannot pay without an attack: \(error)")
        }
        guard try bank.balance(of: victim.name) == before - 1 else {
            throw LabError("\(victim.name)'s payment was answered, and not made")
        }
        note(.victim, action: row.hasPasswords ? "signs in and pays 1" : "pays 1")
    }

    /// The attack kit of another scheme, as apps of that scheme call this row's server.
    func attackKit(for scheme: RowProfile.Scheme) -> any SchemeAttackKit {
        let row = RowProfile(
            name: RowName(scheme.label), summary: "", scheme: scheme, transport: row.transport,
            server: .reference)
        let destination = SigningContext(
            authority: network.authority, transport: row.transport == .plain ? .plain : .tls,
            platform: BankApp.platform, version: BankApp.version)
        return AttackKitCatalogue.attackKit(for: row, in: destination)
    }
}
