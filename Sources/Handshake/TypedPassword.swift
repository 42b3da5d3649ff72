import CountersignOpaque
import CountersignSeal
import CountersignWire

extension Password {
    /// Why a text is no password.
    package enum Problem: Error, Sendable, Equatable, CustomStringConvertible {
        case empty
        case tooLong
        case notUTF8
        /// A control character, or one that Unicode 14.0 does not have: two devices could make different bytes of it.
        case character

        package var description: String {
            switch self {
            case .empty: "a password has at least one character"
            case .tooLong: "a password has at most \(Password.longestTyped) bytes of UTF-8"
            case .notUTF8: "a password is UTF-8"
            case .character: "a password has no control characters, and none that Unicode 14.0 does not have"
            }
        }
    }

    /// Bytes of UTF-8.
    package static let longestTyped = 1024

    /// What a person typed, as the bytes that OPAQUE gets: other spaces become U+0020, and the rest its normal form C, so that
    /// every keyboard spells it alike. Nothing else is changed. Source: RFC 8265 §4.2.2, without its width rule's exceptions.
    ///
    /// ASCII, which is most of them, stays where it is. Anything else passes through a `String`, whose memory nobody wipes.
    package init(typed: Secret) throws(Problem) {
        guard typed.count > 0 else { throw .empty }
        guard typed.count <= Password.longestTyped else { throw .tooLong }
        let isPlain = typed.withExposedBytes { bytes in
            var isPlain = true
            for index in 0..<bytes.count where bytes[index] < 0x20 || bytes[index] >= 0x7F { isPlain = false }
            return isPlain
        }
        guard let password = Password(isPlain ? typed : try Password.normalized(typed)) else { throw .tooLong }
        self = password
    }

    private static func normalized(_ typed: Secret) throws(Problem) -> Secret {
        let text = typed.withExposedBytes { bytes in
            String(utf8: bytes)
        }
        guard let text else { throw .notUTF8 }
        var spaced = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch NameCharacters.refusal(of: scalar) {
            case .space where scalar.value != 0x2028 && scalar.value != 0x2029: spaced.append(" ")
            // Emoji are made with formats and variation selectors.
            case nil, .format, .invisible, .privateUse: spaced.append(scalar)
            case .nul, .control, .space, .unknown: throw .character
            }
        }
        let bytes = String(spaced).composed
        guard bytes.count <= longestTyped else { throw .tooLong }
        return Secret(copying: bytes.span)
    }
}
