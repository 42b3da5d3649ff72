import CountersignOpaque
import CountersignSeal
import CountersignWire

extension Password {
    /// The reason why a text is not a valid password.
    package enum ValidationError: Error, Sendable, Equatable, CustomStringConvertible {
        case empty
        case tooLong
        case notUTF8
        /// A control character, or one that Unicode 14.0 does not define: two devices could encode it
        /// differently.
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

    /// Normalizes a typed password to the bytes that OPAQUE takes: other spaces become U+0020, and the rest
    /// normal form C, so that every keyboard gives the same bytes. Nothing else is changed. Source: RFC
    /// 8265 §4.2.2, without its width rule's exceptions.
    ///
    /// An ASCII password, the common case, is used in place. Any other passes through a `String`, whose
    /// memory is not wiped.
    package init(typed: Secret) throws(ValidationError) {
        guard typed.count > 0 else { throw .empty }
        guard typed.count <= Password.longestTyped else { throw .tooLong }
        let isPlain = typed.withExposedBytes { bytes in
            var isPlain = true
            for index in 0..<bytes.count where bytes[index] < 0x20 || bytes[index] >= 0x7F { isPlain = false }
            return isPlain
        }
        guard let password = Password(isPlain ? typed : try Password.normalized(typed)) else {
            throw .tooLong
        }
        self = password
    }

    private static func normalized(_ typed: Secret) throws(ValidationError) -> Secret {
        let text = typed.withExposedBytes { bytes in
            String(utf8: bytes)
        }
        guard let text else { throw .notUTF8 }
        var spaced = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch AccountNameCharacters.rejection(of: scalar) {
            case .space where scalar.value != 0x2028 && scalar.value != 0x2029: spaced.append(" ")
            // Emoji contain format characters and variation selectors.
            case nil, .format, .invisible, .privateUse: spaced.append(scalar)
            case .nul, .control, .space, .unknown: throw .character
            }
        }
        let bytes = String(spaced).composed
        guard bytes.count <= longestTyped else { throw .tooLong }
        return Secret(copying: bytes.span)
    }
}
