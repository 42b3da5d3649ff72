import Testing

@testable import CountersignLab

/// Without an attack, each row's app works at its server. Otherwise a server that is down would appear safe.
@Suite struct OrdinaryDayTests {
    @Test(arguments: RowCatalogue.all)
    func moneyIsSentAndSeen(_ row: RowProfile) async throws {
        let folder = try Files.makeTemporaryFolder("countersign-lab-test")
        defer { Files.removeFolder(folder) }
        let set = try await StageBuilder(
            row, in: folder, settings: LabSettings(binary: CountersignBinary(), jobs: 1))
        let stage = set.stage
        do {
            let victim = try await stage.newVictim()
            // This rung's value is good for a minute or two, which a busy machine may take to send it.
            if row.name == "hmac-md5-time" { try? await victim.signIn() }
            try await victim.signIn()
            try await victim.transfer(10, to: stage.thief)
            #expect(try await victim.balance() == Bank.openingBalance - 10)
            #expect(try stage.bank.balance(of: stage.thief) == Bank.openingBalance + 10)
        } catch {
            Issue.record("\(row.name): \(error)")
        }
        await set.tearDown()
    }
}
