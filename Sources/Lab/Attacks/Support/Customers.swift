import CountersignSeal

/// The people that attacks need: somebody to be robbed, and who is shown to be served before.
extension Stage {
    /// A new customer, signed in, whose balance was just answered: a server that serves nobody must not look like one that holds.
    package func customer(_ device: DeviceSetup = DeviceSetup()) async throws -> any Victim {
        let victim = try await newVictim(device)
        do throws(VictimProblem) {
            try await victim.signIn()
        } catch {
            throw StageFault("\(victim.name) cannot sign in, though nobody attacks: \(error)")
        }
        try await requireService(to: victim)
        return victim
    }

    /// Throws where the victim is not served although nobody attacks: then nothing that was seen means anything.
    package func requireService(to victim: any Victim) async throws {
        do throws(VictimProblem) {
            _ = try await victim.balance()
        } catch {
            throw StageFault("\(victim.name) is not served, though nobody attacks: \(error)")
        }
    }

    /// Somebody new at the bank whom customers pay.
    package func newShop() throws -> String {
        // Customers' numbers are small, and counted.
        let number = SystemRandom().bytes(6).reduce(Int64(1)) { $0 << 8 | Int64($1) }
        try bank.open(name: "shop\(number)", userID: number)
        return "shop\(number)"
    }

    /// What the thief has now, to compare with later.
    package func loot() throws -> Int { try bank.balance(of: thief) }
}
