import CountersignSeal
import CountersignVault
import Synchronization

/// Hardware that keeps its keys in memory, and can be cleared, taken away and brought back. What it gives out
/// of a key is a number.
final class FakeHardware: DeviceKeyBackEnd {
    enum Conduct: Sendable { case works, isAway, isBroken }

    let storage = KeyStorage.tpm

    private struct State {
        var keys: [UInt8: Secret] = [:]
        var conduct = Conduct.works
        var made: UInt8 = 0
        var uses = 0
    }

    private let state = Mutex(State())
    private let software = SoftwareKeys()

    func behave(_ conduct: Conduct) { state.withLock { $0.conduct = conduct } }

    /// Clears the device like a TPM: it keeps working, without its former keys.
    func clear() { state.withLock { $0.keys = [:] } }

    /// Signatures and agreements so far.
    var uses: Int { state.withLock { $0.uses } }
    var made: Int { state.withLock { Int($0.made) } }

    func makeKey(for use: DeviceKeyUse) throws(DeviceKeyError) -> WrappedKey {
        let key = try software.makeKey(for: use)
        return try state.withLock { (state) throws(DeviceKeyError) in
            guard state.conduct == .works else { throw .unavailable("the test's hardware") }
            state.made += 1
            state.keys[state.made] = key.wrapped
            return WrappedKey(
                point: key.point,
                wrapped: Secret(copying: (Array("wrapped".utf8) + [state.made] + key.point.bytes).span))
        }
    }

    func signingKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceSigningKeyHandle {
        try handle(wrapped)
    }

    func agreementKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceAgreementKeyHandle {
        try handle(wrapped)
    }

    private func handle(_ wrapped: Secret) throws(DeviceKeyError) -> Handle {
        let bytes = wrapped.withExposedBytes { span in span.indices.map { span[$0] } }
        guard bytes.count == 73, let point = P256Point(Array(bytes[8...])) else {
            throw .lost("the test's hardware")
        }
        return Handle(hardware: self, number: bytes[7], point: point)
    }

    private func key(_ number: UInt8) throws(DeviceKeyError) -> Secret {
        try state.withLock { (state) throws(DeviceKeyError) in
            guard state.conduct != .isAway else { throw .unavailable("the test's hardware") }
            guard let key = state.keys[number] else { throw .lost("the test's hardware") }
            state.uses += 1
            return key
        }
    }

    private struct Handle: DeviceSigningKeyHandle, DeviceAgreementKeyHandle {
        let hardware: FakeHardware
        let number: UInt8
        let point: P256Point

        func verifyUsable() throws(DeviceKeyError) { _ = try hardware.key(number) }

        func sign(_ message: [UInt8]) throws(DeviceKeyError) -> [UInt8] {
            try hardware.software.signingKey(hardware.key(number)).sign(message)
        }

        func sharedSecret(with point: P256Point) throws(DeviceKeyError) -> Secret {
            try hardware.software.agreementKey(hardware.key(number)).sharedSecret(with: point)
        }
    }
}
