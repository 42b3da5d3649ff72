import CountersignSeal
import Testing

@testable import CountersignVault

@Suite struct KeychainTests {
    /// Source: Security/SecBase.h.
    @Test(arguments: [
        (-25_300, "absent"), (-25_308, "locked"), (-25_293, "locked"), (-25_291, "locked"),
        (-34_018, "failed"), (-50, "failed"), (-26_275, "failed"), (0, "failed"),
    ]) func aStatusWithoutBytesMeans(_ status: Int, _ expected: String) {
        #expect(kind(KeychainStatus.readResult((Int32(status), nil))) == expected)
    }

    @Test(arguments: [(-25_308, "locked"), (-34_018, "failed")]) func whatIsClosedIsNotEmpty(
        _ status: Int, _ expected: String
    ) throws {
        let calls = MemoryKeychain()
        let store = KeychainStore(calls)
        let name = try item("a")
        try store.put(secret("held"), at: name)
        calls.answer(Int32(status))
        #expect(kind(store.find(name)) == expected)
        #expect(ending { () throws(VaultError) in try store.names() } == expected)
        #expect(ending { () throws(VaultError) in try store.put(secret("x"), at: name) } == expected)
        #expect(ending { () throws(VaultError) in try store.remove(name) } == expected)
        calls.answer(0)
        #expect(try text(store.find(name).get()) == "held")
    }
}
