import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What a verdict on a key pair's signature costs, beside the library's call that is most of it.
extension GateBench {
    func keyPairs() async throws -> [Figure] {
        var figures: [Figure] = []
        for algorithm in [KeyAlgorithm.ed25519, .ecdsaP256] {
            let pair = try PrivateKey(random: algorithm)
            figures.append(
                try await measure(
                    .messageSignatures, "\(algorithm.rawValue): the same request", BenchRequests.message,
                    key: SigningKey(pair), rounds: 60))
            figures.append(try bare(pair))
        }
        return figures
    }

    private func bare(_ pair: PrivateKey) throws -> Figure {
        // As long as the signature base of the request that is judged.
        let message = [UInt8](repeating: UInt8(ascii: "b"), count: 700)
        guard let signature = pair.sign(message.span),
            let call = BareVerification(pair.publicKey, signature, of: message)
        else { throw Fault(.failed, "bench: no bare call for \(pair.algorithm.rawValue)") }
        var times: [Double] = []
        for _ in 0..<60 {
            let start = GateBench.clock()
            for _ in 0..<100 where call.run() != .equal {
                throw Fault(.failed, "bench: the bare call for \(pair.algorithm.rawValue) does not verify")
            }
            times.append(Double(GateBench.clock() - start) / 100)
        }
        return Figure(
            scheme: .messageSignatures, subject: "\(pair.algorithm.rawValue): the bare library call",
            nanoseconds: GateBench.median(times))
    }
}
