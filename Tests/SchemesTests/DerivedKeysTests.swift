import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignSchemes

@Suite struct DerivedKeysTests {
    @Test func onlyWhatHeldIsKept() {
        let keys = DerivedKeys(secret)
        for day in 10..<60 {
            let text = text(day)
            _ = keys.mac(of: text.span)
            keys.settle(.different, of: text.span)
        }
        #expect(keys.count == 0)
        keys.settle(.equal, of: text(10).span)
        #expect(keys.count == 1)
    }

    @Test func keptKeysAreFewAndRight() {
        let keys = DerivedKeys(secret)
        for _ in 0..<2 {
            for day in 10..<40 {
                let text = text(day)
                let cold = DerivedKeys(secret).mac(of: text.span).array
                #expect(keys.mac(of: text.span).array == cold)
                keys.settle(.equal, of: text.span)
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
        let keys = DerivedKeys(secret)
        #expect(keys.mac(of: bytes.span).isEmpty)
        keys.settle(.equal, of: bytes.span)
        #expect(keys.count == 0)
    }

    private var secret: Secret { Secret(copying: Array("a secret".utf8).span) }

    private func text(_ day: Int) -> [UInt8] {
        Array("AWS4-HMAC-SHA256\n20270115T080000Z\n202701\(day)/eu/api/aws4_request\n00".utf8)
    }
}
