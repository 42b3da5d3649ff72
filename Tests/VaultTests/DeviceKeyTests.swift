// Device keys in software keep the contract of all back ends (a TPM's keep it in Tests/Interop), hardware is
// not waited for for ever, and only errors that mean the loss of a key are taken for one.
import CountersignSeal
import Dispatch
import Testing
import VaultContract

@testable import CountersignVault

@Suite struct DeviceKeyTests {
    @Test func softwareKeepsTheContract() {
        let results = DeviceKeyContract(SoftwareKeys()).run()
        #expect(results.count >= 8)
        for result in results { #expect(result.wrong == "", "\(result.rule)") }
    }

    /// The contract finds a back end that signs with another key than it says.
    @Test func aBackEndThatMixesUpItsKeysBreaksTheContract() {
        struct Confused: DeviceKeyBackEnd {
            let storage = KeyStorage.software
            private let software = SoftwareKeys()

            func makeKey(for use: DeviceKeyUse) throws(DeviceKeyError) -> WrappedKey {
                WrappedKey(
                    point: try software.makeKey(for: use).point,
                    wrapped: try software.makeKey(for: use).wrapped)
            }

            func signingKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceSigningKeyHandle {
                try software.signingKey(wrapped)
            }

            func agreementKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceAgreementKeyHandle {
                try software.agreementKey(wrapped)
            }
        }
        #expect(DeviceKeyContract(Confused()).run().filter { !$0.wrong.isEmpty }.count >= 3)
    }

    @Test func hardwareThatHangsIsNotWaitedFor() {
        let deadline = HardwareDeadline("test", patience: .milliseconds(50))
        let release = DispatchSemaphore(value: 0)
        #expect(deadline.run { 1 } == 1)
        #expect(deadline.run { release.wait() } == nil)
        // The thread is still in the first call: the next one does not join it there.
        #expect(deadline.run { 2 } == nil)
        release.signal()
        let later = HardwareDeadline("test", patience: .seconds(10))
        #expect(later.run { 3 } == 3)
        var answer: Int?
        for _ in 0..<100 where answer == nil { answer = deadline.run { 4 } }
        #expect(answer == 4)
    }

    @Test(
        "the Secure Enclave's errors",
        arguments: [
            ("CryptoTokenKit", -3, true), ("CryptoTokenKit", -6, true), ("CryptoTokenKit", -2, false),
            ("CryptoTokenKit", -9, false), ("CryptoKit.CryptoKitError", 1, true),
            ("NSOSStatusErrorDomain", -25308, false), ("com.apple.LocalAuthentication", -1004, false),
            ("", 0, false),
        ])
    func enclaveErrors(_ row: (domain: String, code: Int, isLoss: Bool)) {
        let error = DeviceKeyError(EnclaveFailure(domain: row.domain, code: row.code))
        switch error {
        case .lost: #expect(row.isLoss)
        case .unavailable: #expect(!row.isLoss)
        case .badPoint: Issue.record("no point was asked for")
        }
    }

    #if os(Linux)
        @Test func aTPMThatIsNotThereIsUnavailable() {
            let keys = TPMKeys(device: "device:/nonexistent/tpm", patience: .seconds(5))
            #expect { try keys.makeKey(for: .signing) } throws: { error in
                guard case DeviceKeyError.unavailable(let text) = error else { return false }
                return text.contains("No such file")
            }
        }

        @Test func whatNoTPMWrappedIsLost() {
            for bytes: [UInt8] in [[], [1], [1, 0, 4, 1, 2, 3, 4], [UInt8](repeating: 0xFF, count: 300)] {
                #expect(throws: DeviceKeyError.lost("TPM: not a key that it wrapped")) {
                    _ = try TPMKeys().signingKey(Secret(copying: bytes.span))
                }
            }
        }
    #endif
}
