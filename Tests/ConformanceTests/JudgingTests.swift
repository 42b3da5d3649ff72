// Proves that the judge reads what requests say of their signatures, and that forged answers are forged as
// they are meant to be: those of a stranger do not verify, those under the authority's key do, and one that
// is bound to nothing is refused for that alone. So are pin manifests: each is refused for its own reason,
// and the good one is taken up.

import CountersignLab
import CountersignSchemes
import CountersignSeal
import CountersignTrust
import CountersignWire
import Testing

@testable import CountersignConformance

struct JudgingTests {
    private static let input =
        #"app=("@method" "@path" "content-digest");created=1763719200;nonce="n-1";keyid="s_x.3""#
        + #";alg="hmac-sha256";tag="countersign""#

    @Test(arguments: [
        input, input + #", device=("signature";key="app");created=9;keyid="other";tag="countersign-device""#,
    ])
    func readsASignature(_ input: String) throws {
        let request = RawRequest(method: "GET", target: "/hello", fields: [("Signature-Input", input)])
        let signed = try #require(RequestSignature(request))
        #expect(signed.components == ["@method", "@path", "content-digest"])
        #expect(signed.created == 1_763_719_200)
        #expect(signed.nonce == "n-1")
        #expect(signed.keyID == "s_x.3")
    }

    @Test(arguments: ["", "app", "app=(", "app=)("]) func readsNoSignature(_ input: String) {
        #expect(
            RequestSignature(RawRequest(method: "GET", target: "/", fields: [("Signature-Input", input)]))
                == nil)
        #expect(RequestSignature(RawRequest(method: "GET", target: "/")) == nil)
    }

    // MARK: Forged answers

    private let authority = Secret(random: 32)
    private let refusal = Forgery.refusal(401, code: "session-ended", members: [("reason", "revoked")])

    /// What a client that has the authority's key makes of an answer.
    private func verdict(_ answer: RawResponse, to request: RawRequest) throws
        -> ResponseVerifier.VerificationOutcome
    {
        let keyID = try #require(KeyID(MessageSignatures.authorityKeyID))
        let publicKey = try PrivateKey(ed25519Seed: authority).publicKey
        let fields = answer.fields.lines.map { Draft.Field(name: $0.name, value: $0.value) }
        var draft = Draft(method: request.method, target: Array(request.target.utf8), authority: "localhost")
        draft.fields = request.fields.lines.map { Draft.Field(name: $0.name, value: $0.value) }
        return try ResponseVerifier([keyID: SigningKey(publicKey)])(
            Response(status: answer.status, fields: fields, body: answer.body), to: draft.request())
    }

    private let request = RawRequest(
        method: "GET", target: "/hello?a=1",
        fields: [("Signature-Input", input), ("Signature", "app=:AAAA:")])

    @Test func theAuthoritysIsGenuine() throws {
        let answer = Forgery.signed(refusal, to: request, by: try Forgery.ed25519(authority), at: 1)
        #expect(try verdict(answer, to: request) == .holds(try #require(KeyID("authority"))))
    }

    @Test func aStrangersIsNot() throws {
        let answer = Forgery.signed(refusal, to: request, by: try Forgery.stranger(), at: 1)
        #expect(throws: Refusal.self) { try verdict(answer, to: request) }
    }

    @Test func anUnboundOneIsRefused() throws {
        let answer = Forgery.signedUnbound(refusal, by: try Forgery.ed25519(authority), at: 1)
        #expect(answer.fields["signature"] != nil)
        #expect(throws: Refusal.self) { try verdict(answer, to: request) }
    }

    @Test func anAlteredOneHasTheRightDigestAndAFalseSignature() throws {
        let answer = Forgery.signed(refusal, to: request, by: try Forgery.ed25519(authority), at: 1)
        let altered = Forgery.altered(answer, member: "reason", to: "expired")
        #expect(altered.text.contains("expired"))
        #expect(altered.fields["content-digest"] != answer.fields["content-digest"])
        #expect(throws: Refusal.self) { try verdict(altered, to: request) }
    }

    @Test func anUnsignedOneSaysNothing() throws {
        let answer = Forgery.signed(refusal, to: request, by: try Forgery.ed25519(authority), at: 1)
        #expect(try verdict(Forgery.unsigned(answer), to: request) == .unsigned)
    }

    // MARK: Pin manifests

    private static let now: Int64 = 1_790_000_000

    /// As a port has it that was set up for the case.
    private func problem(of manifest: TestManifest, inForce version: Int) throws -> ManifestError? {
        let (signer, certificates) = (try ManifestSigner(), try TestCertificates())
        let text = try #require(signer.text(of: manifest, naming: certificates))
        let keeper = try TrustKeeper(
            builtIn: .system, version: version, app: TestDeployment.App.ordinary.rawValue,
            keys: [signer.publicKey], store: NoManifest())
        do {
            let taken = try keeper.takeUp(text, at: JudgingTests.now)
            #expect(taken.version == manifest.version)
            return nil
        } catch {
            return error
        }
    }

    @Test func theGoodManifestIsTakenUp() throws {
        let manifest = TestManifest(version: 6, at: JudgingTests.now)
        #expect(try problem(of: manifest, inForce: TestManifest.builtInVersion) == nil)
    }

    @Test func eachOfTheOthersIsRefusedForWhatItSays() throws {
        let (now, inForce) = (JudgingTests.now, TestManifest.builtInVersion)
        let found = try ConformanceCase.RefusedManifest.all(at: now).map {
            try problem(of: $0.manifest, inForce: inForce)
        }
        #expect(
            found == [
                .badSignature, .expired(at: now - 3_600), .notYetValid(from: now + 3_600),
                .notNewer(version: inForce - 1, inForce: inForce),
                .notNewer(version: inForce, inForce: inForce), .otherApp("conformance-short"),
            ])
    }

    // MARK: The list

    @Test func casesHaveNamesOfTheirOwn() {
        let names = ConformanceCase.all.map(\.name)
        #expect(Set(names).count == names.count)
        for one in ConformanceCase.all {
            #expect(one.name.allSatisfy { ("a"..."z").contains($0) || $0 == "-" })
            #expect(one.requirement.hasSuffix("."))
        }
    }
}

/// Keeps nothing.
private struct NoManifest: ManifestStore {
    func read() -> [UInt8]? { nil }
    func write(_ bytes: [UInt8]) {}
}
