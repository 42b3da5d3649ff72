import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignOpaque

@Suite struct OPRFVectorTests {
    @Test("every figure of RFC 9497, appendix A.1.1", arguments: try Vector.load("oprf/rfc9497.json"))
    func oprf(_ vector: Vector) throws {
        #expect(try vector.bytes("key_info") == Array("test key".utf8))
        let key = try OPRF.deriveKey(seed: vector.secret("seed"), info: "test key")
        #expect(key.bytes.exposed == (try vector.bytes("secret_key")))

        let input = try vector.password("input")
        let random = ScriptedRandom([ScriptedRandom.wide(try vector.bytes("blind"))])
        let (blind, blinded) = try OPRF.blind(input, random: random)
        #expect(random.isUsedUp)
        #expect(blinded.bytes == (try vector.bytes("blinded_element")))

        let evaluated = try OPRF.evaluate(blinded, with: key)
        #expect(evaluated.bytes == (try vector.bytes("evaluation_element")))

        let output = try OPRF.finalize(input, blind: blind, evaluated: evaluated)
        #expect(output.exposed == (try vector.bytes("output")))
    }
}
