import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignVault
import CountersignWire

/// What stands behind a client and all values that speak for it: made once, by ``Composition``.
final class ClientCore: Sendable {
    let release: ReleaseKey
    let base: BaseURL
    let options: CountersignOptions
    let carrier: any Carrier
    let trust: TrustInForce
    let keeper: StateKeeper
    let vault: RememberingVault
    let item: ItemName
    let standings: Standings
    let events: Broadcast<CountersignEvent>
    let hints: UpdateHints
    let cookies: CookieStore
    private let names: CallNames
    /// The way of what the state machine itself asks for.
    let surroundings: Surroundings
    private let line = BlockingLine("countersign.client")
    private let isOpen = Locked(false)
    private let offset = Locked<Int64>(0)

    init(_ parts: Composition) {
        (release, base, options, carrier) = (parts.release, parts.base, parts.options, parts.carrier)
        (trust, keeper, vault, item) = (parts.trust, parts.keeper, parts.vault, parts.item)
        (standings, events, surroundings) = (parts.standings, parts.events, parts.surroundings)
        cookies = parts.cookies
        hints = UpdateHints(parts.events)
        names = CallNames(host: parts.base.origin.host.description)
    }

    deinit {
        standings.finish()
        events.finish()
    }

    /// As it is under the trust that is in force.
    var installation: Installation {
        var installation = Installation(
            host: base.origin.authority, transport: base.origin.security == .tls ? .tls : .plain,
            release: release.credentials, userAgent: options.userAgent,
            channel: trust.isPinned ? .pinned : .open)
        installation.prefix = options.routes
        installation.app = release.app
        installation.authorityKey = release.authorityKey
        installation.bearerSecrets =
            options.bearerSecrets == .toAnyCertificateThatVerifies
            ? .toAnyCertificateThatVerifies : .onlyToThePinnedCertificate
        return installation
    }

    /// Where a login may send the password of an account that is not in it; nil where none does.
    var passwordFallback: OpaqueAccounts? {
        options.passwordLogin == .never ? nil : surroundings.opaqueAccounts
    }

    /// The next call's name in events.
    func beginCall(_ method: APIMethod, _ path: String) -> CountersignEvent.Call { names.next(method, path) }

    /// Reads the vault where that was not done: it may take a disk, a keyring, or a person, so it is done where nobody else waits.
    func open() async throws(CountersignError) {
        guard !isOpen.with({ $0 }) else { return }
        try await look()
    }

    /// Reads what the vault has now: another process may have written. Where nothing is to outlive a process, what an earlier one
    /// has kept is removed.
    func look() async throws(CountersignError) {
        let (keeper, vault, item, opaqueAccounts) = (keeper, vault, item, surroundings.opaqueAccounts)
        try await blocking { () throws(CountersignError) in
            do throws(VaultProblem) {
                try vault.forgetKept([keeper.deviceKeys.item, item])
            } catch {
                throw CountersignError(error)
            }
            do throws(ClientProblem) {
                let state = try keeper.look()
                // A version that noted nobody may have begun it. Noted before anything is sent: a server can
                // end the session, and nothing would tell then how it began.
                if let login = state.login, case .device = login.session {
                    try? opaqueAccounts?.insert(login.account)
                }
            } catch {
                throw CountersignError(error)
            }
        }
        isOpen.with { $0 = true }
    }

    /// Moves what is kept to where it belongs from now on.
    func remember(_ what: CountersignOptions.Remembering) async throws(CountersignError) {
        // The device's keys before the state that refers to them.
        let (keeper, vault, item) = (keeper, vault, item)
        try await blocking { () throws(CountersignError) in
            do throws(VaultProblem) {
                try vault.keep(
                    [keeper.deviceKeys.item, item],
                    what == .session ? .outlivesTheProcess : .endsWithTheProcess)
            } catch {
                throw CountersignError(error)
            }
        }
    }

    private func blocking(_ work: @escaping @Sendable () throws(CountersignError) -> Void)
        async throws(CountersignError)
    {
        let result: Result<Void, CountersignError>
        do throws(VaultProblem) {
            result = try await line.run {
                do throws(CountersignError) {
                    return .success(.success(try work()))
                } catch {
                    return .success(.failure(error))
                }
            }
        } catch {
            throw CountersignError(error)
        }
        try result.get()
    }

    /// Tells where the authority's word has moved the clock. A second more or less is rounding.
    func noteClock() {
        guard let now = try? surroundings.now() else { return }
        let moved = now - surroundings.time.now
        let isNew = offset.with { known in
            guard abs(moved - known) > 2 else { return false }
            known = moved
            return true
        }
        if isNew { events.tell(.clockCorrected(offset: moved)) }
    }
}
