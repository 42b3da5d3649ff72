import CountersignWire

extension Stage {
    /// Signs in and pays, as on any day; the victim is signed in then. Throws where that does not work although nobody attacks: then
    /// nothing that fails later has been held off by anybody.
    func seeThatItWorks(_ victim: any Victim) async throws {
        let before = try bank.balance(of: victim.name)
        do throws(VictimProblem) {
            try await victim.signIn()
            try await victim.transfer(1, to: thief)
        } catch {
            throw StageFault("\(victim.name) cannot pay although nobody attacks: \(error)")
        }
        guard try bank.balance(of: victim.name) == before - 1 else {
            throw StageFault("\(victim.name)'s payment was answered, and not made")
        }
        note(.victim, row.hasPasswords ? "signs in and pays 1" : "pays 1")
    }

    /// What is known of another scheme, as the field's apps speak it to this row's server.
    func craft(for scheme: RowProfile.Scheme) -> any Craft {
        let row = RowProfile(
            name: RowName(scheme.label), summary: "", scheme: scheme, transport: row.transport, server: .reference)
        let destination = Destination(
            authority: network.authority, transport: row.transport == .plain ? .plain : .tls,
            platform: Setting.platform, version: Setting.version)
        return CraftCatalogue.craft(for: row, at: destination)
    }
}
