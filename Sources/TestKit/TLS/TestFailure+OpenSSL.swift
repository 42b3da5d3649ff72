import CCrypto

extension TestFailure {
    /// With OpenSSL's reason.
    init(_ what: String) {
        var text = [CChar](repeating: 0, count: 256)
        ERR_error_string_n(ERR_get_error(), &text, text.count)
        ERR_clear_error()
        let reason = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        self.init(description: "\(what): \(reason)")
    }
}
