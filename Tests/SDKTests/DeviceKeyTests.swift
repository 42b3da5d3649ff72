// Device keys from an app's view: they persist with the session, the session ends if the hardware has lost
// them, and continues if the hardware is unavailable.
import ClientFakes
import CountersignSeal
import CountersignVault
import Testing

@testable import Countersign

@Suite(.timeLimit(.minutes(15))) struct DeviceKeyTests {
    /// Hardware that wraps a key as a number, and can be cleared or taken away.
    final class Hardware: DeviceKeyBackEnd {
        enum Conduct: Sendable { case works, isCleared, isAway }

        let storage = KeyStorage.tpm
        let conduct = Locked(Conduct.works)
        private let keys = Locked<[Secret]>([])

        func makeKey(for use: DeviceKeyUse) throws(DeviceKeyError) -> WrappedKey {
            guard conduct.with({ $0 }) == .works else { throw .unavailable("test") }
            let key = try SoftwareKeys().makeKey(for: use)
            let number = keys.with { keys in
                keys.append(key.wrapped)
                return UInt8(keys.count - 1)
            }
            return WrappedKey(point: key.point, wrapped: Secret(copying: [number].span))
        }

        func signingKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceSigningKeyHandle {
            try SoftwareKeys().signingKey(key(wrapped))
        }

        func agreementKey(_ wrapped: Secret) throws(DeviceKeyError) -> any DeviceAgreementKeyHandle {
            try SoftwareKeys().agreementKey(key(wrapped))
        }

        private func key(_ wrapped: Secret) throws(DeviceKeyError) -> Secret {
            switch conduct.with({ $0 }) {
            case .works: break
            case .isCleared: throw .lost("test")
            case .isAway: throw .unavailable("test")
            }
            let number = Int(wrapped.withExposedBytes { $0[0] })
            return keys.with { $0[number] }
        }
    }

    private func world(_ hardware: Hardware) async throws -> World {
        try await World {
            $0.deviceKeyStorage = .hardwareWhereThereIsOne
            $0.deviceKeyHardware = hardware
        }
    }

    @Test func hardwareThatWasClearedEndsTheSession() async throws {
        let hardware = Hardware()
        let world = try await world(hardware)
        _ = try await world.signedIn()
        hardware.conduct.with { $0 = .isCleared }
        await world.pass(FakeSession.lifetime)
        // As at the next start of the app.
        let client = try world.client()
        await #expect {
            try await client.data(for: APIRequest("/orders"))
        } throws: { error in
            guard case CountersignError.signedOut(let end) = error else { return false }
            return end.how == .deviceKeyLost
        }
        guard case .signedOut(.ended(let end)) = client.state else {
            Issue.record("\(client.state)")
            return
        }
        #expect(end.how == .deviceKeyLost && end.at != nil)
        hardware.conduct.with { $0 = .works }
        try await client.logIn("alice", "correct horse")
        await world.pass(FakeSession.lifetime)
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
    }

    @Test func hardwareThatIsAwayEndsNothing() async throws {
        let hardware = Hardware()
        let world = try await world(hardware)
        _ = try await world.signedIn()
        hardware.conduct.with { $0 = .isAway }
        await world.pass(FakeSession.lifetime)
        let client = try world.client()
        await #expect {
            try await client.data(for: APIRequest("/orders"))
        } throws: { error in
            if case CountersignError.deviceKeyUnavailable = error { true } else { false }
        }
        hardware.conduct.with { $0 = .works }
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
    }

    #if os(Linux)
        /// Linux has no hardware for keys, and software does not take the place of hardware that is demanded.
        @Test func hardwareThatIsDemandedIsAbsentOnLinux() async throws {
            let world = try await World { $0.deviceKeyStorage = .hardwareOnly }
            let client = try world.client()
            try await client.signUp("alice", "correct horse")
            await #expect {
                try await client.logIn("alice", "correct horse")
            } throws: { error in
                guard case CountersignError.deviceKeyUnavailable(let reason) = error else { return false }
                return reason.contains("this device has none")
            }
            #expect(client.state == .signedOut(.nobody))
        }
    #endif

    /// The session without its keys could not be renewed.
    @Test func theKeysGoWhereTheSessionGoes() async throws {
        let world = try await world(Hardware())
        let client = try await world.signedIn()
        let vault = Vault(.folder(world.folder.path))
        // The number of items of the session and its keys; the record of OPAQUE accounts is separate and
        // stays.
        func items() async throws -> Int {
            try await vault.names().filter { !$0.service.hasSuffix(" opaque") }.count
        }
        #expect(try await items() == 2)
        try await client.remember(.nothing)
        #expect(try await items() == 0)
        await world.pass(FakeSession.lifetime)
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
        try await client.remember(.session)
        #expect(try await items() == 2)
        await world.pass(FakeSession.lifetime)
        #expect(try await world.client().data(for: APIRequest("/orders")).1.status == 200)
    }
}
