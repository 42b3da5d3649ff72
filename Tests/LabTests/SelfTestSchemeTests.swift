import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignWire
import Testing

@testable import CountersignLab

/// Each scheme that signs has what the self-test needs to attack it. The comments of the expectations name
/// the missing step.
@Suite struct SelfTestSchemeTests {
    @Test(arguments: SchemeName.signing) func theTableNamesEachScheme(_ scheme: SchemeName) throws {
        #expect(try selfTest(of: scheme).name == scheme)
    }

    @Test func theTableNamesNoSchemeThatSignsNothing() {
        let others = SchemeName.allCases.filter { !SchemeName.signing.contains($0) }
        #expect(others.allSatisfy { $0.selfTest == nil })
    }

    @Test(arguments: SchemeName.signing) func eachSchemeHasAPublishedVector(_ scheme: SchemeName) {
        #expect(
            PublishedVector.all.contains { $0.scheme == scheme },
            "\(scheme.rawValue): add its requests to Vectors/selftest.py, which writes PublishedVectors.swift"
        )
    }

    @Test(arguments: SchemeName.signing) func theSignatureIsFound(_ scheme: SchemeName) throws {
        let signed = try signedDraft(of: scheme)
        let step: Comment =
            "\(scheme.rawValue): its `layout` has to say where it writes its signature, and how"
        var changed = signed
        do {
            try changed.flipSignature(of: scheme, at: 0)
        } catch {
            Issue.record(error, step)
            return
        }
        #expect(changed.wire != signed.wire, step)
        #expect(changed.wire.count == signed.wire.count, step)
        // The same bit again: nothing but the signature was changed.
        try changed.flipSignature(of: scheme, at: 0)
        #expect(changed.wire == signed.wire, step)
        try changed.halveSignature(of: scheme)
        #expect(changed.wire.count < signed.wire.count, step)
        let half = changed.wire
        try changed.emptySignature(of: scheme)
        #expect(changed.wire.count < half.count, step)
    }

    @Test(arguments: SchemeName.signing) func theKeyIDIsReplacedEverywhere(_ scheme: SchemeName) throws {
        let step: Comment =
            "\(scheme.rawValue): its `layout` has to say where its key id is, and `replaceKeyID` where else"
        var draft = try signedDraft(of: scheme)
        do {
            try selfTest(of: scheme).replaceKeyID(by: "selftest-nobody", in: &draft)
        } catch {
            Issue.record(error, step)
            return
        }
        let text = String(decoding: draft.wire, as: UTF8.self)
        #expect(text.contains("selftest-nobody"), step)
        #expect(!text.contains(keyID), step)
    }

    @Test(arguments: SchemeName.signing) func eachChangeChangesTheRequest(_ scheme: SchemeName) throws {
        let selfTest = try selfTest(of: scheme)
        let subject = try subject(scheme)
        let bare = try signedDraft(of: scheme, shape: .bare)
        for change in selfTest.parameterChanges {
            var draft = bare
            try change.change(&draft)
            #expect(draft.wire != bare.wire, "\(scheme.rawValue): \(change.name)")
        }
        let whole = try signedDraft(of: scheme)
        var draft = whole
        selfTest.addSignature(to: &draft)
        #expect(draft.wire.count > whole.wire.count, "\(scheme.rawValue): addSignature adds none")
        draft = whole
        selfTest.addMarkersOfAnotherScheme(to: &draft, at: now)
        let foreign = SchemeRegistry.standard.schemes.filter { other in
            other.name != scheme && other.detect(in: draft.request()) != .absent
        }
        #expect(
            !foreign.isEmpty,
            "\(scheme.rawValue): addMarkersOfAnotherScheme adds no markers of another scheme")
        let renewals = [
            selfTest.removeNonce, selfTest.removeCoverage(of: .query), selfTest.removeCoverage(of: .body),
        ]
        for case let renew? in renewals {
            draft = whole
            try renew(&draft, subject)
            #expect(draft.wire.count < whole.wire.count, "\(scheme.rawValue): nothing was left out")
        }
    }

    // MARK: Drafts

    private let keyID = "key-to-be-replaced"
    private let now: Int64 = 1_700_000_000

    private func selfTest(of scheme: SchemeName) throws -> any SelfTestScheme {
        try #require(
            scheme.selfTest,
            """
            \(scheme.rawValue): write a `SelfTestScheme` for it in Tools/Lab/SelfTest/Schemes, and add it to \
            `SchemeName.selfTest`
            """)
    }

    private func subject(_ scheme: SchemeName) throws -> SelfTestSubject {
        var credentials = Credentials(
            keyID: try #require(KeyID(keyID)), key: SigningKey(Secret(random: 32)))
        try selfTest(of: scheme).complete(&credentials)
        return SelfTestSubject(
            origin: Origin(.plaintext, host: try Trust.Host("127.0.0.1"), port: 8080),
            trust: Trust([], others: .refused), authorities: .machine, scheme: scheme,
            credentials: credentials, secretText: [], place: .backend(Array("/notes?a=b".utf8)))
    }

    private func signedDraft(of scheme: SchemeName, shape: RequestShape = .withBody) throws -> Draft {
        let client = SelfTestClient(try subject(scheme))
        return try client.signed(shape, at: now)
    }
}
