import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import TestRounds
import Testing

/// Clients that sign with a key pair whose public key the gate has.
@Suite struct KeyPairTests {
    @Test("signed with the private key, accepted with the public one, once", arguments: TestKeys.signing)
    func accepted(_ algorithm: KeyAlgorithm) async throws {
        let deployment = try Paired(algorithm)
        let request = try deployment.signed(nonce: "n1")
        #expect(await deployment.refusal(of: request) == nil)
        #expect(await deployment.refusal(of: request)?.code == .replayed)
    }

    @Test("every covered part, one bit changed, is refused", arguments: TestKeys.signing)
    func mutated(_ algorithm: KeyAlgorithm) async throws {
        let deployment = try Paired(algorithm)
        var random = seededRandom()
        let request = try deployment.signed(nonce: "n1")
        var flips = 0
        for part in MessageSignatures().coverage.covered {
            for _ in 0..<12 {
                guard let changed = Mutation.flipBit(in: part, of: request, MessageSignatures(), &random)
                else {
                    continue
                }
                flips += 1
                #expect(
                    await deployment.refusal(of: changed) != nil, "\(part.rawValue) changed, and accepted")
            }
        }
        #expect(flips > 50)
        #expect(await deployment.refusal(of: request) == nil)
    }

    @Test("an alg that is not the key's is refused, and both are named")
    func contradiction() async throws {
        let deployment = try Paired(.ed25519)
        let request = try deployment.signed(nonce: "n1") {
            $0.replacing("\"ed25519\"", with: "\"hmac-sha256\"")
        }
        let refusal = try #require(await deployment.refusal(of: request))
        #expect(refusal.code == .badSignature)
        #expect(refusal.detail.contains("hmac-sha256") && refusal.detail.contains("ed25519"))
    }

    @Test(
        "whoever has the public key cannot use it as a shared secret", arguments: TestKeys.signing,
        Named.allCases)
    func confusion(_ algorithm: KeyAlgorithm, _ named: Named) async throws {
        let deployment = try Paired(algorithm)
        let key = try TestKeys.publicKey(algorithm)
        let der = try #require(key.publicKey?.der)
        for secret in [der, Array(der.suffix(32)), try TestKeys.pem(algorithm, "public")] {
            let forger = Credentials(
                keyID: deployment.credentials.keyID, key: SigningKey(Secret(copying: secret.span)))
            let request = try deployment.signed(nonce: "n1", as: forger) {
                named == .hmac ? $0 : $0.replacing(";alg=\"hmac-sha256\"", with: "")
            }
            #expect(await deployment.refusal(of: request)?.code == .badSignature)
        }
    }

    @Test("a key pair's signature says nothing to a key that is a shared secret", arguments: TestKeys.signing)
    func confusionBack(_ algorithm: KeyAlgorithm) async throws {
        let der = try #require(try TestKeys.publicKey(algorithm).publicKey?.der)
        let deployment = try Paired(key: SigningKey(Secret(copying: der.span)), algorithm)
        for part in ["no such part", ";alg=\"\(algorithm.rawValue)\""] {
            let request = try deployment.signed(nonce: "n1") { $0.replacing(part, with: "") }
            #expect(await deployment.refusal(of: request)?.code == .badSignature)
        }
    }

    @Test(
        "keys of another algorithm or another pair do not fit", arguments: TestKeys.signing, TestKeys.signing)
    func others(_ one: KeyAlgorithm, _ other: KeyAlgorithm) async throws {
        guard one != other else { return }
        let deployment = try Paired(key: TestKeys.publicKey(one), other)
        let request = try deployment.signed(nonce: "n1")
        #expect(await deployment.refusal(of: request)?.code == .badSignature)
    }

    @Test(
        "a key for rsa-v1_5-sha256 is accepted only where the policy allows it",
        arguments: [(Policy.Permission.refused, Refusal.Code?.some(.schemeNotAllowed)), (.allowed, nil)])
    func pkcs1(_ row: (permission: Policy.Permission, code: Refusal.Code?)) async throws {
        var policy = Policy()
        policy.rsaV15 = row.permission
        let deployment = try Paired(key: TestKeys.publicKey(.rsaV15), .rsaPSS, policy: policy)
        let request = try deployment.signed(nonce: "n1", signature: Self.pkcs1Signature) {
            $0.replacing("rsa-pss-sha512", with: "rsa-v1_5-sha256")
        }
        #expect(await deployment.refusal(of: request)?.code == row.code)
    }

    /// The signature of the request that `pkcs1` sends. Made with `openssl dgst -sha256 -sign`, because keys for
    /// rsa-v1_5-sha256 only verify here.
    private static let pkcs1Signature = """
        gJ/20lEYqhnFLDrlmT4QddVEGL9LZ84Xxhqr8CHeesRFFRyF0WhXaCg/1VUx86DwXSVrEOTQHe/usJDkxJVX9pijJzG3x36i1pLg\
        AU8e+IV+5elxO4jFzYtqWfWt6b2RgTlV+joc7sxNVhBLNeqGgUA78oTxqkRlEb06pkGSc8LBoKyee0ft/4e+o45NcDj2pc3Fsc4Y\
        rkguo+cbbpH+g++qZ5amozIdYFDoFFj1+kxNNTj/u0vtmMz7VtTFe3W0DO0/bjsRR8J0ovUEsIYDrOggBvTIbyioIQU5y6z8DnYc\
        RWWxC5J1XZM+IlkQeZUi4c3sDoAIKprE0RVvrGJzhQ==
        """

    enum Named: CaseIterable { case hmac, nothing }
}

/// A gate with one release whose clients sign with a key pair.
struct Paired {
    let credentials: Credentials
    private let gate: Gate
    private let replay: ReplayFile
    private let folder: Folder

    init(_ algorithm: KeyAlgorithm) throws { try self.init(key: TestKeys.publicKey(algorithm), algorithm) }

    /// `key` is the gate's; requests are signed with the pair for `algorithm`.
    init(key: SigningKey, _ algorithm: KeyAlgorithm, policy: Policy = Policy()) throws {
        let id = try #require(KeyID("r_pair"))
        folder = try Folder()
        replay = try ReplayFile(path: folder.path + "/replay", expecting: nil, now: Deployment.now)
        let release = AppRelease(
            id: id, app: "shop", platform: "ios", version: "1.0", scheme: .messageSignatures, policy: policy,
            key: key)
        gate = Gate(
            allowedHosts: AllowedHosts([Deployment.authority]), keys: KeyTable(keys: [id: release]),
            replay: replay,
            clock: FixedTime(now: Deployment.now))
        credentials = Credentials(keyID: id, key: try TestKeys.privateKey(algorithm))
    }

    /// Signs what `edit` makes of the Signature-Input that a client would send; `signature`, in Base64, replaces
    /// the signature.
    func signed(
        nonce: String, as signer: Credentials? = nil, signature: String? = nil,
        _ edit: (String) -> String = { $0 }
    ) throws -> Request {
        var draft = Draft(method: "POST", target: Array("/call?x=1".utf8), authority: Deployment.authority)
        draft.setField("Content-Type", to: "text/plain")
        draft.body = Array("hello".utf8)
        let signer = signer ?? credentials
        try MessageSignatures().sign(&draft, as: signer, at: Deployment.now, nonce: nonce)
        let input = String(
            decoding: draft.fields.first { $0.name == "Signature-Input" }?.value ?? [], as: UTF8.self)
        guard edit(input) != input else { return draft.request() }
        draft.setField("Signature-Input", to: edit(input))
        let request = draft.request()
        var workspace = Workspace()
        let claim = try #require(try MessageSignatures().claim(in: request, workspace: &workspace))
        try MessageSignatures().writeStringToSign(for: claim, of: request, into: &workspace)
        let own = try signer.key.sign(workspace.text)
        draft.setField("Signature", to: "app=:\(signature ?? Base64.encode(own.span, as: .standard)):")
        return draft.request()
    }

    func refusal(of request: Request) async -> Refusal? {
        do {
            _ = try await gate.judge(request)
            return nil
        } catch {
            return error
        }
    }
}
