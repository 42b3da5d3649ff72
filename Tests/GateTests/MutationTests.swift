import CountersignGate
import CountersignSchemes
import CountersignWire
import TestRounds
import Testing

/// Parts that a scheme declares as covered cannot be changed; parts that it declares as uncovered can.
@Suite struct MutationTests {
    @Test("random requests: every covered part, then replayed, two at once")
    func coveredParts() async throws {
        let deployment = try Deployment { $0.replays[.sigV4] = .strict }
        let schemes: [any Scheme] = [MessageSignatures(), FormMD5(), SigV4()]
        let seed = testSeed()
        var random = SplitMix64(seed: seed)
        let rounds = rounds(2_000)
        var flips = 0
        for number in 0..<rounds {
            let scheme: any Scheme = schemes[number % schemes.count]
            let request = try randomRequest(scheme.name, number, deployment, &random)
            for part in scheme.coverage.covered {
                for _ in 0..<3 {
                    guard let changed = Mutation.flipBit(in: part, of: request, scheme, &random) else {
                        continue
                    }
                    flips += 1
                    if await deployment.refusal(of: changed) == nil {
                        Issue.record(
                            """
                            \(scheme.name.rawValue) \(number), seed \(seed): \(part.rawValue) changed, and \
                            accepted
                            """
                        )
                    }
                }
            }
            // None of the refused requests consumed the nonce, and of two concurrent copies one is accepted.
            async let first = deployment.refusal(of: request)
            async let second = deployment.refusal(of: request)
            let codes = await [first, second].map { $0?.code }
            #expect(
                codes.count { $0 == nil } == 1, "\(scheme.name.rawValue) \(number), seed \(seed): \(codes)")
            #expect(
                codes.count { $0 == .replayed } == 1,
                "\(scheme.name.rawValue) \(number), seed \(seed): \(codes)")
            #expect(await deployment.refusal(of: request)?.code == .replayed)
        }
        #expect(flips > rounds * 5, "too few changes were tried: \(flips)")
    }

    @Test(
        "every uncovered part can be changed, and is listed",
        arguments: [SchemeName.messageSignatures, .formMD5, .sigV4])
    func uncoveredParts(_ name: SchemeName) async throws {
        let deployment = try Deployment()
        let scheme = try #require(SchemeRegistry.standard.scheme(named: name))
        #expect(Set(scheme.coverage.covered).isDisjoint(with: scheme.coverage.uncovered))
        for (number, part) in scheme.coverage.uncovered.enumerated() {
            // A second apart, for sigv4 has no nonce to tell them by.
            let time = Deployment.now - Int64(number)
            let request = try deployment.signed(name, at: time, nonce: "nonce000\(number)") {
                if name == .formMD5, part == .method { $0.method = "GET" }
                if name == .formMD5, part == .formSpelling { $0.body = Array("a=x".utf8) }
                if part == .querySpelling { $0.target = Array("/call?x=1&y".utf8) }
                if part == .emptyQuery { $0.target = Array("/call".utf8) }
                if part == .fieldLines { $0.setField("X-Words", to: "two, words") }
                if part == .fieldSpelling { $0.setField("X-Words", to: "two words") }
                $0.setField("User-Agent", to: "test")
            }
            let changed = try #require(
                Mutation.change(part, of: request), "\(part.rawValue): no change known")
            let refusal = await deployment.refusal(of: changed)
            #expect(refusal == nil, "\(part.rawValue): \(refusal?.detail ?? "")")
        }
    }

    private func randomRequest(
        _ scheme: SchemeName, _ number: Int, _ deployment: Deployment, _ random: inout SplitMix64
    ) throws -> Request {
        let letters = Array("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-._~")
        func word(_ lengths: ClosedRange<Int>) -> String {
            String(
                (0..<Int.random(in: lengths, using: &random)).map { _ in
                    letters.randomElement(using: &random) ?? "x"
                })
        }
        let isForm = scheme == .formMD5
        let method = (isForm ? ["GET", "POST"] : ["GET", "POST", "PUT", "DELETE", "PATCH"]).randomElement(
            using: &random)
        return try deployment.signed(scheme, nonce: "number0\(number)") {
            $0.method = method ?? "GET"
            let query = (0..<Int.random(in: 1...4, using: &random)).map { "k\($0)=\(word(0...8))" }.joined(
                separator: "&")
            // No segment is a dot alone: sigv4 would not take the path.
            $0.target = Array(
                "/a\(word(0...20))/b\(word(0...10))\($0.method == "POST" && isForm ? "" : "?" + query)".utf8)
            if isForm {
                if $0.method == "POST" { $0.body = Array(query.utf8) }
                return
            }
            for index in 0..<Int.random(in: 1...5, using: &random) {
                $0.setField("X-Field-\(index)", to: word(1...20))
            }
            if $0.method != "GET" {
                $0.setField("Content-Type", to: "application/json")
                $0.setField("Idempotency-Key", to: word(8...20))
                $0.body = Array(word(1...200).utf8)
            }
        }
    }
}
