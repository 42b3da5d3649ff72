import CountersignWire
import Testing

@Suite struct SessionTokenTests {
    private static let id = "AAECAwQFBgcICQoLDA0ODw"

    @Test("one spelling each", arguments: ["0", "7", "10", "4294967295"])
    func tokens(_ epoch: String) throws {
        let text = "s_\(SessionTokenTests.id).\(epoch)"
        let token = try #require(SessionToken(text))
        #expect(token.description == text && "\(token.epoch)" == epoch)
        #expect(token.id.bytes == [UInt8](0..<16))
    }

    @Test(
        "what is no token",
        arguments: [
            "", "s_", "s_.0", "s_\(id)", "s_\(id).", "s_\(id).00", "s_\(id).01", "s_\(id).4294967296",
            "s_\(id).-1", "s_\(id).+1", "s_\(id). 1", "s_\(id).1 ", "s_\(id).1.1", "S_\(id).1", "r_\(id).1",
            "s_\(id)A.1", "s_AAECAwQFBgcICQoLDA0OD.1", "s_AAECAwQFBgcICQoLDA0ODx.1",
            "s_AAECAwQFBgcICQoLDA0OD=.1", "s_AAECAwQFBgcICQoLDA0OD+.1", "s_\(id)é.1", "s_\(id).99999999999",
        ])
    func others(_ text: String) { #expect(SessionToken(text) == nil) }

    @Test("an id that begins like an option says so, and no other does")
    func options() {
        for first in UInt8.min...UInt8.max {
            let bytes = [first] + [UInt8](repeating: 7, count: 15)
            let id = SessionID(bytes.span)
            #expect(id?.readsAsOption == id?.description.hasPrefix("-"))
        }
    }
}
