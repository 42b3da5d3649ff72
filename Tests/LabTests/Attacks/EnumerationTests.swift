import Testing

@testable import CountersignLab

/// What tells names apart.
@Suite struct EnumerationTests {
    @Test func timesFallIntoTwo() {
        var times: [String: Duration] = [:]
        for number in 0..<6 {
            times["unknown\(number)"] = .microseconds(300 + 40 * number)
            times["known\(number)"] = .microseconds(20_000 + 900 * number)
        }
        // One was held up in all of its turns.
        times["known3"] = .milliseconds(90)
        let told = EnumerationTime.slower(times)
        #expect(told.names == Set((0..<6).map { "known\($0)" }))
        #expect(told.gap == .microseconds(20_000 - 500))
    }

    @Test func equalTimesDoNotTell() {
        let times = Dictionary(uniqueKeysWithValues: (0..<12).map { ("name\($0)", Duration.microseconds(500)) })
        #expect(EnumerationTime.slower(times).names.count != 6)
        #expect(EnumerationTime.slower([:]).names.isEmpty)
    }

    @Test func everythingAboutAnAnswerIsAFeature() {
        func features(_ body: String, _ status: Int = 401) -> [String: String] {
            let fields: RawFields = [("Content-Type", "application/json"), ("X-Event", "1234")]
            return AnswerFeatures(RawResponse(status, fields: fields, body: Array(body.utf8)), step: 1).values
        }
        let known = features(#"{"code":"wrong","retry":{"after":1}}"#)
        func differing(_ other: [String: String]) -> Set<String> {
            Set(known.filter { other[$0.key] != $0.value }.keys)
        }
        #expect(differing(features(#"{"code":"wrong","retry":{"after":1}}"#)).isEmpty)
        #expect(differing(features(#"{"code":"wrong","retry":{"after":1}}"#, 404)) == ["1 status"])
        #expect(differing(features(#"{"code":"other","retry":{"after":1}}"#)).contains("1 value of body.code"))
        #expect(differing(features(#"{"code":"wrong","retry":{"after":22}}"#)).contains("1 length of body.retry.after"))
        #expect(differing(features(#"{"code":"wrong","retry":{}}"#)).contains("1 members of body.retry"))
        #expect(differing(features("no such user")).contains("1 length of the body"))
    }
}
