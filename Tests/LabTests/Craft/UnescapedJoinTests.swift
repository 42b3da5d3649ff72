import Testing

@testable import CountersignLab

@Suite struct UnescapedJoinTests {
    @Test(arguments: [
        // auth-v1: the app's own user and its authentication parameters follow.
        (
            "user=me&to=thief%26user%3Danna%26v%3D&amount=5&auth_key=k&auth_signature=s",
            "amount=5&auth_key=k&to=thief&user=anna&v=%26user%3Dme&auth_signature=s"
        ),
        ("to=a%26b&amount=5", "amount=5&to=a&b="),
    ])
    func theSameTextIsCutElsewhere(form: String, recut: String) throws {
        let join = UnescapedJoin { $0 == "auth_signature" }
        let before = RawForm(reading: form)
        let after = try #require(join.reparsed(before))
        #expect(after.text == recut)
        let text = (UnescapedJoin.text(join.sorted(before)), UnescapedJoin.text(join.sorted(after)))
        // A name without `=` gains one: it is in the form of the parser, not of the signer.
        if recut.contains("user") { #expect(text.0 == text.1) }
    }

    @Test func anHonestPayeeLeavesNoRoom() {
        #expect(UnescapedJoin { _ in false }.reparsed(RawForm(reading: "to=shop&amount=5")) == nil)
    }
}
