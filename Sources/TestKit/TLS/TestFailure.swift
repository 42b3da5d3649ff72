import CCrypto

/// What the fixture could not do.
public struct TestFailure: Error, CustomStringConvertible {
    /// In OpenSSL's or the system's words.
    public let description: String

    init(_ what: String) {
        var text = [CChar](repeating: 0, count: 256)
        ERR_error_string_n(ERR_get_error(), &text, text.count)
        ERR_clear_error()
        description =
            "\(what): \(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))"
    }
}
