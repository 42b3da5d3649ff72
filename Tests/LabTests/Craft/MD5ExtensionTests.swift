import CountersignSeal
import Testing

@testable import CountersignLab

@Suite struct MD5ExtensionTests {
    /// Lengths around each limit of the padding: those that fit in one block, and those that need another.
    @Test(arguments: [0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 200])
    func whoKnowsDigestAndLengthGoesOn(count: Int) throws {
        let secret = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 7 + 3) }
        for more in ["", "&to=thief", String(repeating: "x", count: 150)] {
            let whole = secret + MD5Extension.padding(behind: count) + Array(more.utf8)
            let carried = MD5Extension.digest(
                continuing: md5(secret), of: count, with: Array(more.utf8))
            #expect(carried == md5(whole), "\(count) bytes, then \(more.utf8.count)")
        }
    }

    @Test func aWrongLengthGivesAnotherDigest() {
        let whole = Array("secret".utf8) + MD5Extension.padding(behind: 6) + Array("more".utf8)
        let carried = MD5Extension.digest(
            continuing: md5(Array("secret".utf8)), of: 70, with: Array("more".utf8))
        #expect(carried != md5(whole))
    }

    @Test func onlyADigestIsCarriedOn() {
        #expect(MD5Extension.digest(continuing: [1, 2, 3], of: 3, with: []) == nil)
    }

    private func md5(_ bytes: [UInt8]) -> [UInt8] {
        let digest = MD5.digest(bytes.span)
        return (0..<16).map { digest[$0] }
    }
}
