import Testing

@testable import CountersignLab

/// The features of responses that distinguish names.
@Suite struct EnumerationTests {
    @Test func whoIsLikeTheAttackersOwnAccountIsAMember() {
        let names = ["slow", "slower", "quick", "held up"]
        let times: [String: Duration] = [
            "slow": .microseconds(18_000), "slower": .microseconds(90_000), "quick": .microseconds(400),
            "held up": .microseconds(9_000),
        ]
        let (own, nobody) = (Duration.microseconds(20_000), Duration.microseconds(300))
        #expect(
            EnumerationTimeAttack.members(among: names, times: times, own: own, unknown: nobody) == [
                "slow", "slower",
            ])
        // A server that is slower for unknown names reveals as much.
        #expect(
            EnumerationTimeAttack.members(among: names, times: times, own: nobody, unknown: own) == [
                "quick", "held up",
            ])
    }

    @Test func everythingAboutAnAnswerIsAFeature() {
        func features(_ body: String, _ status: Int = 401) -> [String: String] {
            let fields: RawFields = [("Content-Type", "application/json"), ("X-Event", "1234")]
            return ResponseFeatures(RawResponse(status, fields: fields, body: Array(body.utf8)), step: 1)
                .values
        }
        let known = features(#"{"code":"wrong","retry":{"after":1}}"#)
        func differing(_ other: [String: String]) -> Set<String> {
            Set(known.filter { other[$0.key] != $0.value }.keys)
        }
        #expect(differing(features(#"{"code":"wrong","retry":{"after":1}}"#)).isEmpty)
        #expect(differing(features(#"{"code":"wrong","retry":{"after":1}}"#, 404)) == ["1 status"])
        #expect(
            differing(features(#"{"code":"other","retry":{"after":1}}"#)).contains("1 value of body.code"))
        #expect(
            differing(features(#"{"code":"wrong","retry":{"after":22}}"#)).contains(
                "1 length of body.retry.after"))
        #expect(differing(features(#"{"code":"wrong","retry":{}}"#)).contains("1 members of body.retry"))
        #expect(differing(features("no such user")).contains("1 length of the body"))
    }
}
