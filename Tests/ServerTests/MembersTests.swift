import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignServer

@Suite struct MembersTests {
    private func members(_ text: String) throws(Refusal) -> RequestBodyMembers {
        try RequestBodyMembers(of: Array(text.utf8))
    }

    @Test("what is there is read, and what is not asked for is passed over")
    func good() throws {
        let body = try members(
            #"""
            {"account":"bob","ke1":"AQID","time":1700000000,"device":{"class":"phone"},"later":[{}],\#
            "code":null}
            """#
        )
        #expect(try body.text("account") == "bob")
        #expect(try body.bytes("ke1", count: 3) == [1, 2, 3])
        #expect(try body.bytes("ke1", upTo: 3) == [1, 2, 3])
        #expect(try body.integer("time") == 1_700_000_000)
        #expect(try body.members("device").text("class") == "phone")
        #expect(try body.text(ifAny: "code") == nil)
        #expect(try body.text(ifAny: "nothing") == nil)
        #expect(try body.members(ifAny: "device")?.text("class") == "phone")
        #expect(try body.secret("account", upTo: 3).count == 3)
    }

    @Test(
        "a body that is none",
        arguments: [
            "", "[]", "null", "{", #"{"account":"a","account":"a"}"#, #"{"a":1}x"#,
            #"{"a":[[[[[[[[[1]]]]]]]]]}"#,
            #"{"a":"\#(String(repeating: "x", count: RequestBodyMembers.mostBytes))"}"#,
        ])
    func notAnObject(_ text: String) {
        #expect(throws: Refusal.self) { try members(text) }
    }

    @Test("each member is asked for by its kind, and a refusal names it")
    func kinds() throws {
        let body = try members(
            #"""
            {"text":"x","number":7,"half":1.5,"large":99999999999999999999,"list":[],"short":"AQI",\#
            "odd":"AQ=="}
            """#
        )
        let refused: [(String, (RequestBodyMembers) throws -> Void)] = [
            ("nothing", { _ = try $0.text("nothing") }), ("number", { _ = try $0.text("number") }),
            ("text", { _ = try $0.integer("text") }), ("half", { _ = try $0.integer("half") }),
            ("large", { _ = try $0.integer("large") }),
            ("number", { _ = try $0.integer("number", in: 0...6) }),
            ("short", { _ = try $0.bytes("short", count: 3) }),
            ("short", { _ = try $0.bytes("short", upTo: 1) }), ("odd", { _ = try $0.bytes("odd", count: 1) }),
            ("list", { _ = try $0.members("list") }), ("text", { _ = try $0.secret("text", upTo: 0) }),
        ]
        for (name, read) in refused {
            let refusal = #expect(throws: Refusal.self) { try read(body) }
            #expect(refusal?.code == .malformed)
            #expect(refusal?.detail.contains("`\(name)`") == true, "\(refusal?.detail ?? "")")
        }
    }
}
