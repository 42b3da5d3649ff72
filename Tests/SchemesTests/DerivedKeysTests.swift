import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignSchemes

@Suite struct DerivedKeysTests {
    @Test func onlyWhatHeldIsKept() {
        let keys = DerivedKeyCache(secret)
        for day in 10..<60 {
            let text = text(day)
            _ = keys.mac(of: text.span)
            keys.recordVerdict(.different, of: text.span)
        }
        #expect(keys.count == 0)
        keys.recordVerdict(.equal, of: text(10).span)
        #expect(keys.count == 1)
    }

    @Test func keptKeysAreFewAndRight() {
        let keys = DerivedKeyCache(secret)
        for _ in 0..<2 {
            for day in 10..<40 {
                let text = text(day)
                let cold = DerivedKeyCache(secret).mac(of: text.span).array
                #expect(keys.mac(of: text.span).array == cold)
                keys.recordVerdict(.equal, of: text.span)
                #expect(keys.mac(of: text.span).array == cold)
            }
            #expect(keys.count == 4)
        }
    }

    @Test(
        "a text that names no scope has no MAC",
        arguments: [
            "", "a\nb\nc", "AWS4-HMAC-SHA256\n20270115T080000Z\na/b/c\n",
            "AWS4-HMAC-SHA256\n20270115T080000Z\na/b/c/d/e\n",
        ])
    func nonsense(_ text: String) {
        let bytes = Array(text.utf8)
        let keys = DerivedKeyCache(secret)
        #expect(keys.mac(of: bytes.span).isEmpty)
        keys.recordVerdict(.equal, of: bytes.span)
        #expect(keys.count == 0)
    }

    private var secret: Secret { Secret(copying: Array("a secret".utf8).span) }

    private func text(_ day: Int) -> [UInt8] {
        Array("AWS4-HMAC-SHA256\n20270115T080000Z\n202701\(day)/eu/api/aws4_request\n00".utf8)
    }
}
