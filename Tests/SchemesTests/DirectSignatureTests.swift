import CountersignSeal
import CountersignWire
import TestRounds
import Testing

@testable import CountersignSchemes

/// A request that is signed directly has the bytes that it has if its list of components is read back.
@Suite struct DirectSignatureTests {
    private let key = SigningKey(Secret(copying: Array("a secret of the release".utf8).span))
    private let names = [
        "Accept", "Accept-Language", "X-One", "x-one", "Content-Type", "Content-Digest", "Cookie",
        "Countersign-Release", "Signature", "signature-input", "X Y", "x_y", "Connection", "TE",
        "Proxy-Thing", "Idempotency-Key", "User-Agent", "Authorization", "x-ünï", "",
    ]
    private let values = [
        "", "a", "a b, c", "  spaces ", "\"quoted\"", "sha-256=:AAAA:", "ümläut", "x\u{7F}",
    ]
    private let targets = ["/", "", "?", "/a/b?", "/a%20b?x=1&y=2?z", "*", "/ünï?ö"]
    private let nonces = ["n0nce-_A", "", "a\"b", "a\\b", "ü", "a.b"]

    @Test("requests, ordinary ones and others")
    func sameBytes() throws {
        var random = seededRandom()
        let rounds = rounds(20_000)
        var direct = 0
        // One workspace each for all requests, as a client keeps it.
        var quickWorkspace = Workspace()
        var strictWorkspace = Workspace()
        for number in 0..<rounds {
            var draft = Draft(
                method: pick(["GET", "POST", "get", "M-SEARCH"], by: &random),
                target: Array(pick(targets, by: &random).utf8),
                authority: pick(["Example.com", "a.b:443", "a.b:80", "[::1]:8080", ""], by: &random),
                transport: random.next() % 2 == 0 ? .tls : .plain)
            let fieldCount = Int(random.next() % (number % 50 == 0 ? 80 : 5))
            for _ in 0..<fieldCount {
                draft.fields.append(
                    Draft.Field(name: pick(names, by: &random), value: pick(values, by: &random)))
            }
            if random.next() % 3 == 0 { draft.body = Array("a body".utf8) }
            let name = pick(["r_1", "r\\\"x", "authority"], by: &random)
            let credentials = Credentials(keyID: try #require(KeyID(name)), key: key)
            let nonce = number % 3 == 0 ? pick(nonces, by: &random) : "AbC_-09"
            let quick = outcome(draft, as: credentials, nonce: nonce, in: &quickWorkspace, by: .direct)
            let strict = outcome(draft, as: credentials, nonce: nonce, in: &strictWorkspace, by: .readBack)
            guard quick.draft == strict.draft, quick.refusal == strict.refusal else {
                Issue.record("\(draft): \(quick), read back: \(strict)")
                return
            }
            if quick.isDirect { direct += 1 }
        }
        #expect(direct > rounds / 10 && direct < rounds * 3 / 4, "\(direct) were signed directly")
    }

    private struct Outcome {
        var draft: [Draft.Field]?
        var refusal: String?
        var isDirect = false
    }

    private func outcome(
        _ draft: Draft, as credentials: Credentials, nonce: String, in workspace: inout Workspace,
        by way: MessageSignatures.SigningWay
    ) -> Outcome {
        var draft = draft
        do throws(Refusal) {
            let way = try MessageSignatures().sign(
                &draft, as: credentials, at: 1_700_000_000, nonce: nonce, workspace: &workspace, by: way)
            return Outcome(draft: draft.fields, isDirect: way == .direct)
        } catch {
            return Outcome(refusal: "\(error.code) \(error.detail)")
        }
    }

    private func pick(_ texts: [String], by random: inout SplitMix64) -> String {
        texts[Int(random.next() % UInt64(texts.count))]
    }
}
