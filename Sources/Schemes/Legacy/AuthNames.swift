import CountersignWire

/// The parameters that say that, how and by whom a request is signed with auth-v1 or auth-v2, as far as is needed to
/// tell whose it is.
struct AuthNames {
    private var hasSignature = false
    private var hasKey = false
    private var hasTelling = false
    private var versions = 0
    private var isSecond = false

    /// Whether somebody signs here, well or badly.
    var areSigned: Bool { hasSignature || (hasKey && hasTelling) }

    /// auth-v2 says so, once; whatever says anything else, or nothing, is auth-v1's to judge.
    var scheme: SchemeName { versions == 1 && isSecond ? .authV2 : .authV1 }

    init() {}

    /// As far as the text can be read: where it may be signed, the claim says what is wrong with it. Only pairs that may
    /// be meant are looked at, for this is asked of every request, whatever signs it.
    init(in text: Span<UInt8>) {
        var start = 0
        while start < text.count {
            if AuthNames.mayBegin(with: text[start]) {
                var reader = Form.Reader(at: start)
                guard let pair = try? reader.next(in: text) else { return }
                note(pair, of: text)
            }
            guard let end = text.firstIndex(of: UInt8(ascii: "&"), from: start) else { return }
            start = end + 1
        }
    }

    private mutating func note(_ pair: Form.Pair, of text: Span<UInt8>) {
        if Form.isNamed("auth_signature", pair, of: text) { hasSignature = true }
        if Form.isNamed("auth_key", pair, of: text) || Form.isNamed("auth_client_id", pair, of: text) { hasKey = true }
        if Form.isNamed("auth_timestamp", pair, of: text) { hasTelling = true }
        if Form.isNamed("auth_version", pair, of: text) {
            hasTelling = true
            versions += 1
            // A value may be escaped like a name.
            var value = pair
            value.name = pair.value
            isSecond = Form.isNamed("2", value, of: text)
        }
    }

    /// Whether a name that begins so may stand for one in `auth_`.
    private static func mayBegin(with byte: UInt8) -> Bool { byte == UInt8(ascii: "a") || byte == UInt8(ascii: "%") }
}
