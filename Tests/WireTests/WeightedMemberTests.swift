// Proves which members of a weighted list are read, and that a weight is no other number than RFC 9110 allows.

import CountersignWire
import Testing

@Suite struct WeightedMemberTests {
    @Test(
        "weights are read in thousandths",
        arguments: [
            ("a", 1000), ("a;q=1", 1000), ("a;q=1.000", 1000), ("a;q=0.5", 500), ("a ; q=0.001", 1),
            ("a;Q=0", 0), ("a;q=0.", 0),
        ])
    func weights(text: String, weight: Int) throws {
        let member = try #require(WeightedMember(text[...]))
        #expect(member.value == "a" && member.parameters.isEmpty && member.weight == weight)
    }

    @Test(
        "what is no weight is none",
        arguments: [
            "a;q=", "a;q=inf", "a;q=nan", "a;q=1e3", "a;q=1.001", "a;q=2", "a;q=-1", "a;q=+1", "a;q=.5",
            "a;q=0.0001", "a;q=0x1", "a;q=1;q=1",
        ])
    func malformed(_ text: String) { #expect(WeightedMember(text[...]) == nil) }

    @Test func otherParametersAreKept() throws {
        let member = try #require(WeightedMember(" text/plain;version=\"0.0.4\" ;q=0.3;;charset=utf-8\t"))
        #expect(member.value == "text/plain" && member.weight == 300)
        #expect(member.parameters == ["version=\"0.0.4\"", "", "charset=utf-8"])
    }
}
