import CountersignSeal
import Synchronization
import Testing

@testable import CountersignVault

private struct Finger: FingerprintReader {
    let verdict: FingerprintVerdict
    func verify(within patience: Duration) -> FingerprintVerdict { verdict }
}

private struct Password: PasswordCheck {
    /// Nil where the machine cannot check one.
    let right: String?

    func verify(_ ask: @escaping @Sendable () -> Secret?) -> PasswordVerdict {
        guard let right else { return .unavailable("test") }
        guard let typed = ask() else { return .givenUp }
        return text(typed) == right ? .accepted(typed) : .refused("test")
    }
}

/// A guard for the key that a finger opens: it opens what it sealed, until it is cleared.
private final class Guard: KeyGuard {
    let kind = KeyGuardKind.keyFile
    private let key = Mutex<Secret?>(nil)

    func clear() { key.withLock { $0 = nil } }
    func seal(_ key: Secret) throws(VaultError) -> [UInt8] {
        self.key.withLock { $0 = key }
        return [1]
    }
    func open(_ sealed: [UInt8]) throws(VaultError) -> Secret {
        guard let key = key.withLock({ $0 }) else { throw .failed("test") }
        return key
    }
}

/// Nil if the user is present.
private func step<Value>(_ answer: PresenceAnswer<Value>) -> PresenceStep? {
    if case .notPresent(let step, _) = answer { step } else { nil }
}

@Suite struct PresenceTests {
    /// Every code that the system has, and two that it does not have yet.
    @Test(arguments: [
        (-1, PresenceStep.retry), (-2, .loginPage), (-3, .loginPage), (-4, .loginPage), (-5, .loginPage),
        (-6, .loginPage), (-128, .loginPage), (-7, .loginPage), (-8, .passcodeOrPassword),
        (-9, .passcodeOrPassword), (-10, .passcodeOrPassword), (-11, .passcodeOrPassword),
        (-1004, .passcodeOrPassword), (0, .passcodeOrPassword), (1, .passcodeOrPassword),
        (-25_293, .passcodeOrPassword), (.min, .passcodeOrPassword), (.max, .passcodeOrPassword),
    ]) func aCodeLeadsTo(_ code: Int, _ step: PresenceStep) {
        #expect(LocalAuthenticationCode.step(code) == step)
    }

    enum Machine: String, CaseIterable { case guarded, clearedGuard, noGuard }

    private func outcome(
        _ machine: Machine, _ finger: FingerprintVerdict?, _ password: String?, typed: String?
    ) throws -> String {
        try withFolder { folder throws in
            let vault = Vault(MemoryStore(), locks: VaultLocks(folder: folder))
            let clearable = Guard()
            let keyGuard: (any KeyGuard)? = machine == .noGuard ? nil : clearable
            let name = try item("anna")
            let binder = PresenceSecretStore(
                vault, fingerprint: nil, password: Password(right: "right"),
                fingerprintGuard: keyGuard, cost: .init(memory: 64, passes: 1))
            let right: @Sendable () -> Secret? = { Secret(copying: Array("right".utf8).span) }
            let bound = try binder.bind(secret("root"), to: name, ask: right)
            #expect(step(bound) == nil)
            if machine == .clearedGuard { clearable.clear() }
            let presence = PresenceSecretStore(
                vault, fingerprint: finger.map { Finger(verdict: $0) }, password: Password(right: password),
                fingerprintGuard: keyGuard,
                cost: .init(memory: 64, passes: 1))
            let answered = typed.map { secret($0) }
            let ask: @Sendable () -> Secret? = { answered }
            switch try presence.release(name, ask: ask) {
            case .present(let secret): return text(secret) ?? "?"
            case .notPresent(let step, _): return "\(step)"
            }
        }
    }

    @Test func theSecretComesOutForWhoIsThereAndForNobodyElse() throws {
        let table: [(Machine, FingerprintVerdict?, password: String?, typed: String?, expected: String)] = [
            (.guarded, .match, nil, nil, "root"),
            (.guarded, .noMatch, "right", "right", "retry"),
            (.guarded, .unavailable("no reader"), "right", "right", "root"),
            (.guarded, .unavailable("no reader"), "right", "wrong", "retry"),
            (.guarded, .unavailable("no reader"), "right", nil, "loginPage"),
            (.guarded, .unavailable("no reader"), nil, "right", "loginPage"),
            (.guarded, nil, "right", "right", "root"),
            // A finger alone opens nothing where no guard has the key.
            (.noGuard, .match, "right", nil, "loginPage"),
            (.noGuard, .match, nil, nil, "loginPage"),
            (.noGuard, .match, "right", "right", "root"),
            (.clearedGuard, .match, "right", nil, "loginPage"),
            (.clearedGuard, .match, "right", "right", "root"),
            // The machine takes another password now; the key does not.
            (.noGuard, nil, "changed", "changed", "loginPage"),
        ]
        for (machine, finger, password, typed, expected) in table {
            let found = try outcome(machine, finger, password, typed: typed)
            #expect(
                found == expected,
                "\(machine) \(String(describing: finger)) \(password ?? "-") \(typed ?? "-")")
        }
    }

    @Test(arguments: [
        ("right" as String?, "wrong" as String?, PresenceStep.retry), ("right", nil, .loginPage),
        (nil, "right", .loginPage),
    ])
    func nothingIsBoundForWhoIsNotThere(_ password: String?, _ typed: String?, _ expected: PresenceStep)
        throws
    {
        try withFolder { folder throws in
            let vault = Vault(MemoryStore(), locks: VaultLocks(folder: folder))
            let answered = typed.map { secret($0) }
            let ask: @Sendable () -> Secret? = { answered }
            let presence = PresenceSecretStore(
                vault, fingerprint: nil, password: Password(right: password), fingerprintGuard: nil)
            let bound = try presence.bind(secret("root"), to: item("a"), ask: ask)
            #expect(step(bound) == expected)
            #expect(try kind(vault.read(item("a"))) == "absent")
        }
    }

    @Test func aBoxBelongsToItsName() throws {
        let box = try PresenceSealedSecret(
            secret("root"), for: item("a"), password: cheap("x"), fingerprint: nil)
        let key = try cheap("x").open(box.underPassword)
        #expect(try text(PresenceSealedSecret(box.bytes, for: item("a"))?.open(key)) == "root")
        #expect(try PresenceSealedSecret(box.bytes, for: item("b"))?.open(key) == nil)
        for count in 0..<box.bytes.count {
            #expect(try PresenceSealedSecret(Array(box.bytes[..<count]), for: item("a"))?.open(key) == nil)
        }
    }
}

#if os(Linux)
    @Suite struct MachinePresenceTests {
        /// A task asks the user for a password and shows the reason; a wrong or missing password releases
        /// nothing.
        @Test func thePersonIsAskedAndToldWhy() async throws {
            let asked = Mutex<[String]>([])
            let typed = Mutex<String?>("right")
            let folder = try Folder()
            let vault = Vault(MemoryStore(), locks: VaultLocks(folder: folder.path))
            let presence = UserPresence(
                MachinePresence(
                    fingerprint: nil, check: Password(right: "right"), fingerprintGuard: nil,
                    cost: .init(memory: 64, passes: 1)
                ) { reason in
                    await Task.yield()
                    asked.withLock { $0.append(reason) }
                    return typed.withLock { $0 }
                })
            let name = try item("anna")
            #expect(step(try await presence.setBytes([1, 2], at: name, in: vault, reason: "keep")) == nil)
            guard case .present([1, 2]) = try await presence.bytes(name, in: vault, reason: "pay") else {
                Issue.record("did not come out")
                return
            }
            typed.withLock { $0 = "wrong" }
            #expect(step(try await presence.bytes(name, in: vault, reason: "pay")) == .retry)
            typed.withLock { $0 = nil }
            #expect(step(try await presence.bytes(name, in: vault, reason: "pay")) == .loginPage)
            #expect(asked.withLock { $0 } == ["keep", "pay", "pay", "pay"])
            try await presence.remove(name, in: vault)
            #expect(step(try await presence.bytes(name, in: vault, reason: "pay")) == .loginPage)
            #expect(asked.withLock { $0.count } == 4)
        }
    }
#endif
