import CountersignWire

/// Which of form-md5's own names occur, however they are escaped.
struct FormMD5Names: FormNames {
    private var hasAppID = false
    private var hasTelling = false
    private var isCut = false

    /// Whether somebody signs here, well or badly.
    var areSigned: Bool { hasAppID && hasTelling }
    /// Whether there are none; a text that cannot be read to its end may have some.
    var areForeign: Bool { !hasAppID && !hasTelling && !isCut }

    init() {}

    /// As far as the text can be read.
    init(in text: Span<UInt8>) {
        var reader = Form.Reader()
        do throws(Form.Problem) {
            while let pair = try reader.next(in: text) { note(pair, of: text) }
        } catch {
            isCut = true
        }
    }

    mutating func note(_ pair: Form.Pair, of text: Span<UInt8>) {
        if !hasAppID { hasAppID = Form.isNamed("app_id", pair, of: text) }
        if !hasTelling {
            hasTelling =
                Form.isNamed("sign", pair, of: text) || Form.isNamed("rand", pair, of: text)
                || Form.isNamed("timestamp", pair, of: text)
        }
    }

    /// Whether `private_key`, which is not sent, sorts before that parameter.
    static func isPrivateKey(before parameter: FormParameter, _ text: borrowing Span<UInt8>) -> Bool {
        let key: StaticString = "private_key"
        // `private_`, as prefixes have it.
        let prefix: UInt64 = 0x7072_6976_6174_655F
        if parameter.prefix != prefix { return prefix < parameter.prefix }
        let name = text.extracting(parameter.name.range)
        for index in 0..<min(name.count, key.utf8CodeUnitCount) where name[index] != key.utf8Start[index] {
            return key.utf8Start[index] < name[index]
        }
        return key.utf8CodeUnitCount < name.count
    }
}
