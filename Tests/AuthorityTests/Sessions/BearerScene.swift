import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignAuthority

/// A client with bearer tokens, the store, the sessions in memory and the whole gate.
struct BearerScene {
    let base: SessionScene
    let bearers: BearerSessions
    let account: Account

    init(_ settings: [String] = [], requiring level: RouteRule.Level = .signed) throws {
        let base = try SessionScene(
            ["schemes=message-signatures,form-md5", "legacy-renewal=on"] + settings, requiring: level)
        self.base = base
        bearers = try BearerSessions(base.deployment, directory: base.live, writer: base.writer)
        var old = try draft(base.app, id: "r_old", version: "0.9", scheme: .formMD5)
        old.platform = try #require(Platform("android"))
        _ = try base.deployment.addRelease(old, at: 6)
        account = try BearerScene.addLegacy("user", userID: 42, to: base)
    }

    static func addLegacy(_ name: String, userID: Int64?, to base: SessionScene) throws -> Account {
        var draft = AccountDraft(
            app: base.app, name: try AccountName(normalizing: name), userID: userID, created: 7,
            tombstones: nil)
        draft.legacy = LegacyCredential(rung: .md5, sealed: [1])
        let recorded = base.deployment.auditDraft(for: .accountAdd, on: .account(draft.name, of: base.app))
        guard case .yes(let added) = try base.deployment.store.insert(draft, recording: recorded) else {
            throw OperationalError(.failed, message: "taken")
        }
        return added
    }

    func policy() throws -> Policy { try base.deployment.app(base.app).policy() }

    func open(_ account: Account? = nil) async throws -> BearerGrant {
        let login = BearerLogin(
            account: (account ?? self.account).number, app: base.app, release: KeyID("r_old"),
            platform: try #require(Platform("android")), deviceClass: .other, deviceName: "android 0.9",
            credential: nil, renewing: .keeping
        )
        return try #require(try await bearers.open(login, policy: policy(), at: base.now))
    }

    func renew(
        _ token: LoginToken, _ habit: BearerRenewal.LoginTokenRule = .rotating, of app: AppName? = nil
    ) async throws -> BearerGrant {
        try await bearers.renew(
            token, of: app ?? base.app, by: nil, policy: policy(), loginTokenRule: habit, at: base.now)
    }

    /// The refusal of a renewal; nil if it is accepted.
    func refusalOfRenewal(_ token: LoginToken, _ habit: BearerRenewal.LoginTokenRule = .rotating) async throws
        -> Refusal?
    {
        let policy = try policy()
        do throws(Refusal) {
            _ = try await bearers.renew(
                token, of: base.app, by: nil, policy: policy, loginTokenRule: habit, at: base.now)
            return nil
        } catch {
            return error
        }
    }

    /// The gate's decision on a signed form with these parameters: the session, or the refusal.
    func judge(
        _ parameters: String, query: String = "", authorization: [String] = [],
        for destination: RequestDestination = .backend
    ) async throws -> Result<String?, Refusal> {
        var request = Draft(
            method: "POST", target: Array("/api\(query)".utf8), authority: SessionScene.authority)
        request.body = Array(parameters.utf8)
        request.fields = [.init(name: "content-type", value: "application/x-www-form-urlencoded")]
        request.fields += authorization.map { .init(name: "authorization", value: $0) }
        let key = try base.release("r_old")
        let signer = Credentials(keyID: key.id, key: key.key, platform: "android", version: "0.9")
        try FormMD5().sign(
            &request, as: signer, at: base.now, nonce: "n\(UInt64.random(in: 0...UInt64.max))0000000")
        return await judge(request.request(), for: destination)
    }

    func judge(_ request: Request, for destination: RequestDestination = .backend) async -> Result<
        String?, Refusal
    > {
        do throws(Refusal) {
            return .success(try await base.gate.judge(request, for: destination).session?.account.subject)
        } catch {
            return .failure(error)
        }
    }

    /// The code with which a request with this token is refused; nil if it is accepted.
    func code(bearing token: BearerToken) async throws -> Refusal.Code? {
        switch try await judge("token=\(token.text)") {
        case .success: nil
        case .failure(let refusal): refusal.code
        }
    }
}
