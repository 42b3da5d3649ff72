import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@Suite struct LoginLadderTests {
    @Test("figures of the field, every intermediate", arguments: try LadderCase.all())
    func knownAnswers(_ row: LadderCase) throws {
        let settings = row.settings
        let minute = LadderMinute(at: row.time, settings: settings)
        #expect(String(decoding: minute.text, as: UTF8.self) == row.minute)
        let key = try #require(settings.key)
        #expect(LoginLadder.minuteKey(key).shown == row.minuteKey)
        #expect(
            try LoginLadder.storedValue(of: row.secret, on: .hmacMD5Time, settings: settings).shown
                == row.kept)
        #expect(row.minuteMessage == row.kept + row.minute)
        for rung in Rung.allCases {
            let kept = try LoginLadder.storedValue(of: row.secret, on: rung, settings: settings)
            let sent = try LoginLadder.sentValue(for: kept, on: rung, settings: settings, at: row.time)
            #expect(sent.shown == row.sent[rung.rawValue], "\(rung)")
            let bytes = Array(kept.shown.utf8)
            #expect(rung.validateStoredValue(bytes.span) == .valid)
        }
    }

    @Test("the figures name every rung")
    func names() throws {
        for row in try LadderCase.all() { #expect(Set(row.sent.keys) == Set(Rung.allCases.map(\.rawValue))) }
    }

    @Test("what a rung needs and the app's policy lacks is named")
    func missing() {
        let password = Secret(random: 8)
        #expect(throws: LadderSettings.MissingSettingError.salt) {
            try LoginLadder.storedValue(of: password, on: .md5Salt, settings: LadderSettings())
        }
        for rung in [Rung.hmacMD5, .hmacMD5Time] {
            #expect(throws: LadderSettings.MissingSettingError.key) {
                try LoginLadder.storedValue(of: password, on: rung, settings: LadderSettings())
            }
        }
        #expect(throws: LadderSettings.MissingSettingError.key) {
            try LoginLadder.sentValue(for: password, on: .hmacMD5Time, settings: LadderSettings(), at: 0)
        }
        #expect(LadderSettings.MissingSettingError.salt.description.contains("legacy-salt"))
    }

    @Test("the minute turns with the app's clock", arguments: minutesTable)
    func minutes(_ row: (time: Int64, offset: Int, text: String)) {
        let minute = LadderMinute(at: row.time, settings: LadderSettings(timezoneOffset: row.offset))
        #expect(String(decoding: minute.text, as: UTF8.self) == row.text)
    }

    @Test("no clock is too far off to be read", arguments: [Int64.min, Int64.min + 60, Int64.max])
    func farOff(_ time: Int64) {
        for offset in [-50_400, 0, 50_400] {
            let minute = LadderMinute(at: time, settings: LadderSettings(timezoneOffset: offset))
            #expect(minute.text.count == 15 && minute.previous.text.count == 15)
            #expect(minute.previous.number == minute.number - 1)
        }
    }

    @Test("a plus that arrived as a space is a plus again in Base64, and nowhere else")
    func plus() {
        let field = PasswordField(Array("a b+c".utf8).span)
        #expect(field.normalised(for: .base64).shown == "a+b+c")
        for rung in [Rung.plainGet, .plainPost, .md5, .hmacMD5Time] {
            #expect(field.normalised(for: rung).shown == "a b+c")
        }
        let digits = PasswordField(Array("ABCdef09".utf8).span)
        #expect(digits.normalised(for: .md5).shown == "abcdef09")
        #expect(digits.normalised(for: .plainPost).shown == "ABCdef09")
    }

    @Test("the password is read where the rung tells it, and nowhere else")
    func passwords() {
        func read(_ text: String, _ rung: Rung) -> String? {
            PasswordField(Array(text.utf8).span).password(on: rung)?.shown
        }
        for rung in [Rung.plainGet, .plainPost] { #expect(read("a b+c", rung) == "a b+c") }
        #expect(read("YSBiK2M=", .base64) == "a b+c")
        #expect(read("fj4 ", .base64) == "~>>", "a space stands for the plus")
        for text in ["YSBiK2M", "YSBiK2M==", "!", String(repeating: "YQ==", count: 300)] {
            #expect(read(text, .base64) == nil)
        }
        #expect(read(String(repeating: "a", count: PasswordField.longest + 1), .plainPost) == nil)
        for rung in [Rung.md5, .md5Salt, .hmacMD5, .hmacMD5Time] {
            #expect(read("5f4dcc3b5aa765d61d8327deb882cf99", rung) == nil)
        }
    }

    @Test("what a rung cannot have kept", arguments: keptTable)
    func kept(_ row: (rung: Rung, value: String, isKept: Bool)) {
        let bytes = Array(row.value.utf8)
        #expect((row.rung.validateStoredValue(bytes.span) == .valid) == row.isKept)
    }
}

struct LadderCase: Decodable, Sendable, CustomTestStringConvertible {
    var name: String
    var password: String
    var salt: String
    var key: String
    var timezoneOffset: Int
    var time: Int64
    var minute: String
    var minuteKey: String
    var kept: String
    var minuteMessage: String
    var sent: [String: String]

    var testDescription: String { name }

    static func all() throws -> [LadderCase] {
        try Vectors.load("login-ladder/cases.json", as: LadderCase.self)
    }

    var secret: Secret { Secret(copying: Array(password.utf8).span) }
    var settings: LadderSettings {
        LadderSettings(
            salt: Secret(copying: Array(salt.utf8).span), key: Secret(copying: Array(key.utf8).span),
            timezoneOffset: timezoneOffset)
    }
}

extension Secret {
    fileprivate var shown: String { withExposedBytes { $0.text } }
}

private let minutesTable: [(time: Int64, offset: Int, text: String)] = [
    (0, 0, "1970-01-0100:00"),
    (59, 0, "1970-01-0100:00"),
    (60, 0, "1970-01-0100:01"),
    (-1, 0, "1969-12-3123:59"),
    (-60, 0, "1969-12-3123:59"),
    (-61, 0, "1969-12-3123:58"),
    (1_709_251_140, 0, "2024-02-2923:59"),
    (1_709_251_200, 0, "2024-03-0100:00"),
    (1_709_251_140, 28_800, "2024-03-0107:59"),
    (1_709_251_140, -12_600, "2024-02-2920:29"),
]

private let keptTable: [(rung: Rung, value: String, isKept: Bool)] = [
    (.plainGet, "", false),
    (.plainPost, "x", true),
    (.plainPost, "a\0b", false),
    (.plainPost, String(repeating: "x", count: 1024), true),
    (.plainPost, String(repeating: "x", count: 1025), false),
    (.base64, "eA==", true),
    (.base64, "eA", false),
    (.base64, "eB==", false),
    (.base64, "e A=", false),
    (.md5, String(repeating: "0a", count: 16), true),
    (.md5, String(repeating: "0A", count: 16), false),
    (.md5Salt, String(repeating: "0a", count: 15), false),
    (.hmacMD5, String(repeating: "0g", count: 16), false),
    (.hmacMD5Time, String(repeating: "0a", count: 17), false),
]
