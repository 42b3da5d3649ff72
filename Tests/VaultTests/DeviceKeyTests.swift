// Device keys in software keep the contract of all back ends, and only errors that mean the loss of a key are
// taken for one.
import CountersignSeal
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

    @Test(
        "the Secure Enclave's errors",
        arguments: [
            ("CryptoTokenKit", -3, true), ("CryptoTokenKit", -6, true), ("CryptoTokenKit", -2, false),
            ("CryptoTokenKit", -9, false), ("CryptoKit.CryptoKitError", 1, true),
            ("NSOSStatusErrorDomain", -25308, false), ("com.apple.LocalAuthentication", -1004, false),
            ("", 0, false),
        ])
    func enclaveErrors(_ row: (domain: String, code: Int, isLoss: Bool)) {
        let error = DeviceKeyError(EnclaveError(domain: row.domain, code: row.code))
        switch error {
        case .lost: #expect(row.isLoss)
        case .unavailable: #expect(!row.isLoss)
        case .badPoint: Issue.record("no point was asked for")
        }
    }
}
