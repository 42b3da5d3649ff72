import CountersignGate
import CountersignSchemes
import CountersignWire
import TestRounds
import Testing

/// Parts that auth-v1, auth-v2 and auth-v4 declare as covered cannot be changed; parts that they declare as
/// uncovered can.
@Suite struct AuthMutationTests {
    @Test(
        "random requests: every covered part, then sent again",
        arguments: [SchemeName.authV1, .authV2, .authV4])
    func coveredParts(_ name: SchemeName) async throws {
        let deployment = try Deployment()
        let scheme = try #require(SchemeRegistry.standard.scheme(named: name))
        let seed = testSeed()
        var random = SplitMix64(seed: seed)
        let rounds = rounds(800)
        var flips = 0
        for number in 0..<rounds {
            let request = try randomRequest(name, number, deployment, &random)
            for part in scheme.coverage.covered {
                for _ in 0..<6 {
                    guard let changed = Mutation.flipBit(in: part, of: request, scheme, &random) else {
                        continue
                    }
                    flips += 1
                    if await deployment.refusal(of: changed) == nil {
                        Issue.record(
                            "\(name.rawValue) \(number), seed \(seed): \(part.rawValue) changed, and accepted"
                        )
                    }
                }
            }
            let first = await deployment.refusal(of: request)
            #expect(first == nil, "\(name.rawValue) \(number), seed \(seed): \(first?.detail ?? "")")
            let isKnown = name == .authV1 && !request.matches(request.method, text: "GET")
            #expect(await deployment.refusal(of: request)?.code == (isKnown ? .replayed : nil))
        }
        #expect(flips > rounds * 6, "too few changes were tried: \(flips)")
    }

    @Test(
        "every uncovered part can be changed, and is listed",
        arguments: [SchemeName.authV1, .authV2, .authV4])
    func uncoveredParts(_ name: SchemeName) async throws {
        let deployment = try Deployment { $0.replays[.authV1] = .off }
        let scheme = try #require(SchemeRegistry.standard.scheme(named: name))
        #expect(Set(scheme.coverage.covered).isDisjoint(with: scheme.coverage.uncovered))
        // The target and a body are covered as the members or parameters in them.
        let parts = scheme.coverage.covered + scheme.coverage.uncovered
        #expect(!Set(parts).isDisjoint(with: [.formParameters, .jsonMembers]))
        for part in scheme.coverage.uncovered {
            let request = try deployment.signed(name, nonce: "") {
                $0.setField("User-Agent", to: "test")
                if part == .formSpelling {
                    $0.target = Array("/call".utf8)
                    $0.setField("Content-Type", to: "application/x-www-form-urlencoded")
                    $0.body = Array("a=x".utf8)
                }
                if part == .jsonSpelling { $0.body = Array(#"{"a":"x"}"#.utf8) }
            }
            let changed = try #require(
                Mutation.change(part, of: request), "\(part.rawValue): no change known")
            let refusal = await deployment.refusal(of: changed)
            #expect(refusal == nil, "\(part.rawValue): \(refusal?.detail ?? "")")
        }
    }

    @Test("a body under body_md5 cannot be changed")
    func signedBody() async throws {
        let deployment = try Deployment()
        var request = try deployment.signed(.authV1, nonce: "") { $0.body = Array(#"{"a":1}"#.utf8) }
        request.body[5] ^= 1
        #expect(await deployment.refusal(of: request)?.code == .bodyMismatch)
        request.body[5] ^= 1
        #expect(await deployment.refusal(of: request) == nil)
    }

    @Test(
        "an old request of auth-v2 and auth-v4 with a new timestamp is accepted",
        arguments: [SchemeName.authV2, .authV4])
    func oldWithNewTime(_ name: SchemeName) async throws {
        let deployment = try Deployment()
        let old = try deployment.signed(name, at: Deployment.now - 3 * 86_400, nonce: "")
        #expect(await deployment.refusal(of: old)?.code == .stale)
        var renewed = old
        let (before, after) = (Array("\(Deployment.now - 3 * 86_400)".utf8), Array("\(Deployment.now)".utf8))
        let place = try #require(old.head.indices.first { old.head[$0...].starts(with: before) })
        renewed.head.replaceSubrange(place..<(place + before.count), with: after)
        #expect(await deployment.refusal(of: renewed) == nil)
        let weakness = "the time is not signed: an old request with a new timestamp is accepted"
        #expect(
            try #require(SchemeRegistry.standard.scheme(named: name)).coverage.weaknesses.contains(weakness))
    }

    @Test("auth-v1 by each replay rule", arguments: [Policy.ReplayRule.strict, .unsafeOnly, .off])
    func replays(_ rule: Policy.ReplayRule) async throws {
        let deployment = try Deployment { $0.replays[.authV1] = rule }
        for (method, rules) in [("GET", [Policy.ReplayRule.strict]), ("POST", [.strict, .unsafeOnly])] {
            let request = try deployment.signed(.authV1, nonce: "") { $0.method = method }
            #expect(await deployment.refusal(of: request) == nil)
            #expect(await deployment.refusal(of: request)?.code == (rules.contains(rule) ? .replayed : nil))
        }
    }

    @Test("auth-v4 behind a proxy: the URL is the one that clients see")
    func publicURL() async throws {
        let deployment = try Deployment { $0.publicURL = "https://api.example.com" }
        var request = try deployment.signed(.authV4, nonce: "")
        request.transport = .plain
        #expect(await deployment.refusal(of: request) == nil)
        let other = try deployment.signed(.authV4, nonce: "") { $0.authority = "other.example.com" }
        #expect(await deployment.refusal(of: other)?.code == .badSignature)
    }

    private func randomRequest(
        _ name: SchemeName, _ number: Int, _ deployment: Deployment, _ random: inout SplitMix64
    ) throws -> Request {
        let letters = Array("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-._~")
        func word(_ lengths: ClosedRange<Int>) -> String {
            String(
                (0..<Int.random(in: lengths, using: &random)).map { _ in
                    letters.randomElement(using: &random) ?? "x"
                })
        }
        let count = Int.random(in: 1...4, using: &random)
        return try deployment.signed(name, nonce: "") {
            $0.method = (Bool.random(using: &random) ? "GET" : "POST")
            let form = (0..<count).map { "k\($0)\($0 == 3 ? "[]" : "")=\(word(0...8))" }.joined(
                separator: "&")
            let isForm = name != .authV4 && $0.method == "POST"
            $0.target = Array("/\(word(1...20))\(number)\(isForm ? "" : "?" + form)".utf8)
            if isForm {
                $0.setField("Content-Type", to: "application/x-www-form-urlencoded")
                $0.body = Array(form.utf8)
            }
            if name == .authV4 {
                let values = [
                    "null", "true", "false", "-1.5e3", "\"\(word(0...9))\"", "[1, \"a\"]", "{ }",
                    "{\"B\":[]}",
                ]
                let members = (0..<count).map { "\"n\($0)\" :\(values.randomElement(using: &random) ?? "0")" }
                $0.body = Array("{\(members.joined(separator: ", "))}".utf8)
            }
        }
    }
}
