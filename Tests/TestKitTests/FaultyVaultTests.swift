import CountersignTestKit
import CountersignVault
import Testing

@Suite struct FaultyVaultTests {
    private let name: ItemName
    private let faulty: FaultyVault

    init() async throws {
        name = try ItemName(service: "test", account: "a")
        faulty = try FaultyVault()
        try await faulty.vault.setText("kept", at: name)
    }

    private func ending(_ body: () async throws -> Void) async -> VaultError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? VaultError
        }
    }

    @Test func aFaultHappensAtItsCallAndOnce() async throws {
        faulty.plan(.locked, at: .read, number: 2)
        #expect(try await faulty.vault.text(name).get() == "kept")
        #expect(faulty.pending == 1)
        guard case .locked = await faulty.vault.text(name) else {
            Issue.record("not locked")
            return
        }
        #expect(faulty.pending == 0)
        #expect(try await faulty.vault.text(name).get() == "kept")
        #expect(faulty.calls == [.write, .read, .read, .read])
    }

    @Test func aWriteThatFailsChangesNothingUnlessItSaysAfterwards() async throws {
        faulty.plan(.failed, at: .write)
        guard case .failed = await ending({ try await faulty.vault.setText("new", at: name) }) else {
            Issue.record("written")
            return
        }
        #expect(try await faulty.vault.text(name).get() == "kept")
        faulty.plan(.failedAfterwards, at: .write)
        guard case .failed = await ending({ try await faulty.vault.setText("new", at: name) }) else {
            Issue.record("did not fail")
            return
        }
        #expect(try await faulty.vault.text(name).get() == "new")
    }

    @Test(arguments: [FaultyVault.Fault.writtenByAnother, .removedByAnother]) func whatAnotherDoesIsFoundOut(
        _ fault: FaultyVault.Fault
    ) async throws {
        faulty.plan(fault, at: .read)
        let read = try #require(try await faulty.vault.item(name).get())
        #expect(read.text == "kept")
        let late = await ending {
            try await faulty.vault.setText("late", at: name, expecting: .version(read.version))
        }
        #expect(late == .changed && faulty.pending == 0)
        #expect(try await faulty.vault.text(name).get() == (fault == .removedByAnother ? nil : "kept"))
    }

    @Test func alwaysIsUntilItEnds() async throws {
        faulty.always(.locked)
        for _ in 0..<3 {
            guard case .locked = await ending({ _ = try await faulty.vault.names() }) else {
                Issue.record("not locked")
                return
            }
        }
        faulty.always(nil)
        #expect(try await faulty.vault.names() == [name])
    }

    @Test func aSlowCallTakesItsTime() async throws {
        faulty.plan(.slow(milliseconds: 60), at: .read)
        let began = ContinuousClock.now
        #expect(try await faulty.vault.text(name).get() == "kept")
        #expect(ContinuousClock.now - began >= .milliseconds(60))  // lint: true on a slow machine, too
    }

    @Test func aPersonIsThereOrIsNot() async throws {
        let person = ScriptedPerson()
        let presence = person.presence
        guard case .present = try await presence.setBytes([1, 2], at: name, in: faulty.vault, reason: "keep")
        else {
            Issue.record("not kept")
            return
        }
        person.refuse(.retry)
        guard case .notPresent(.retry, _) = try await presence.bytes(name, in: faulty.vault, reason: "pay")
        else {
            Issue.record("came out")
            return
        }
        guard case .present([1, 2]) = try await presence.bytes(name, in: faulty.vault, reason: "pay") else {
            Issue.record("did not come out")
            return
        }
        try await presence.remove(name, in: faulty.vault)
        #expect(person.names.isEmpty && person.reasons == ["keep", "pay", "pay"])
    }
}
