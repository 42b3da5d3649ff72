// Device keys in software keep the contract of all back ends (a TPM's keep it in Tests/Interop), hardware is
// not waited for for ever, and only errors that mean the loss of a key are taken for one.
import CountersignSeal
import Dispatch
import Testing
import VaultContract

#if canImport(Glibc)
    import Glibc
#endif

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
        let deadline = DeadlineQueue("test", patience: .milliseconds(50))
        let release = DispatchSemaphore(value: 0)
        #expect(deadline.run { 1 } == 1)
        #expect(deadline.run { release.wait() } == nil)
        // The thread is still in the first call: the next one does not join it there.
        #expect(deadline.run { 2 } == nil)
        release.signal()
        let later = DeadlineQueue("test", patience: .seconds(10))
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
        let error = DeviceKeyError(EnclaveError(domain: row.domain, code: row.code))
        switch error {
        case .lost: #expect(row.isLoss)
        case .unavailable: #expect(!row.isLoss)
        case .badPoint: Issue.record("no point was asked for")
        }
    }

    #if os(Linux) && TPM
        @Test func aTPMThatIsNotThereIsUnavailable() {
            let keys = TPMKeys(device: "device:/nonexistent/tpm", patience: .seconds(5))
            #expect { try keys.makeKey(for: .signing) } throws: { error in
                guard case DeviceKeyError.unavailable(let text) = error else { return false }
                return text.contains("No such file")
            }
        }

        /// A TPM that takes the connection and says nothing more, as one does whose driver hangs.
        @Test func aTPMThatHangsIsUnavailableInTime() throws {
            let silent = try SilentPorts()
            let keys = TPMKeys(
                device: "swtpm:host=127.0.0.1,port=\(silent.port)", patience: .milliseconds(300))
            for _ in 0..<2 {
                #expect { try keys.makeKey(for: .signing) } throws: { error in
                    guard case DeviceKeyError.unavailable(let text) = error else { return false }
                    return text.contains("does not answer in time")
                }
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

#if os(Linux) && TPM
    /// Two consecutive ports with listening sockets that never answer; closed on deallocation.
    private final class SilentPorts {
        let port: UInt16
        private let sockets: [Int32]

        struct Problem: Error {}

        init() throws {
            for port in stride(from: UInt16(21_000), to: 60_000, by: 2) {
                guard let first = SilentPorts.listen(port) else { continue }
                guard let second = SilentPorts.listen(port + 1) else {
                    close(first)
                    continue
                }
                (self.port, sockets) = (port, [first, second])
                return
            }
            throw Problem()
        }

        deinit { for socket in sockets { close(socket) } }

        private static func listen(_ port: UInt16) -> Int32? {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            let bound = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            guard bound == 0, Glibc.listen(descriptor, 4) == 0 else {
                close(descriptor)
                return nil
            }
            return descriptor
        }
    }
#endif
