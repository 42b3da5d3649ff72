import CountersignClient
import CountersignHandshake
import CountersignSeal
import CountersignTrust
import CountersignVault

/// A device's signing key where it comes out only with somebody present.
struct BoundKey: DeviceKeyBinder {
    let presence: UserPresence
    let vault: Vault
    /// Apart from the session's item: this one is sealed to a person.
    let service: String
    /// What he reads while he is asked.
    let reason: String

    nonisolated(nonsending) func bind(_ key: Secret, named name: String) async throws(ClientProblem) {
        let answer: PresenceStep
        do throws(VaultProblem) {
            let place = try ItemName(service: service, account: name)
            switch try await presence.setSecret(key, at: place, in: vault, reason: reason) {
            case .present: return
            case .notPresent(let step, _): answer = step
            }
        } catch {
            if case .locked(let detail) = error { throw .vaultLocked(detail) }
            throw .vaultFailed("\(error)")
        }
        throw .notPresent(answer)
    }

    /// The key, for as long as its holder lets it be used. In hardware it is the wrapped key that presence
    /// lets out.
    func release(_ keys: DeviceKeys, in surroundings: Surroundings) async throws(CountersignError) -> PassingSigner {
        let answer: PresenceAnswer<Secret>
        do throws(VaultProblem) {
            let place = try ItemName(service: service, account: keys.name)
            answer = try await presence.secret(place, in: vault, reason: reason)
        } catch {
            throw CountersignError(error)
        }
        switch answer {
        case .notPresent(let step, _): throw .notPresent(step)
        case .present(let secret):
            do throws(ClientProblem) {
                return PassingSigner(try surroundings.open(secret, of: keys))
            } catch {
                throw CountersignError(error)
            }
        }
    }
}

/// A key that is taken back: who kept a hold of the signer has nothing any more.
final class PassingSigner: DeviceSigner {
    let point: P256Point
    private let key: Locked<DeviceSigningKey?>

    init(_ key: DeviceSigningKey) {
        point = key.point
        self.key = Locked(key)
    }

    func sign(_ text: [UInt8]) throws(ClientProblem) -> [UInt8] {
        guard let key = key.with({ $0 }) else { throw .presenceNeeded }
        return try key.sign(text)
    }

    /// Itself, till it is taken back.
    var present: PassingSigner? { key.with { $0 } == nil ? nil : self }

    func takeBack() { key.with { $0 = nil } }
}
