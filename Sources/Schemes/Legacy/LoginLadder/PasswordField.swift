import CountersignSeal
import CountersignWire

/// The form field `password` of a legacy login, decoded: what the rungs of one door can have put there.
package struct PasswordField: Sendable {
    /// Longest value that is taken, in bytes. A longer one is hashed like any other wrong one, cut to this
    /// length: how long it takes must not tell which rung an account is on.
    package static let longest = 1024

    private let bytes: Secret

    package init(_ bytes: Span<UInt8>) {
        self.bytes = Secret(copying: bytes.extracting(0..<min(bytes.count, PasswordField.longest + 1)))
    }

    /// The value as the rung's clients mean it: their `+` that arrived as a space is put back into Base64,
    /// and digits of digests are lower-case. Whether it is well formed is not asked: a wrong value fails
    /// where values are compared.
    package func normalised(for rung: Rung) -> Secret {
        switch rung {
        case .plainGet, .plainPost: bytes
        case .base64: bytes.mapped { $0 == UInt8(ascii: " ") ? UInt8(ascii: "+") : $0 }
        case .md5, .md5Salt, .hmacMD5, .hmacMD5Time: bytes.mapped(ASCII.lowercased)
        }
    }

    /// What a server in the field keeps of it; nil for a value that the rung's clients cannot have made, and
    /// on the last rung, whose clients send none that could be kept.
    package func storedValue(on rung: Rung) -> Secret? {
        guard rung.endpoint != .minute else { return nil }
        let value = normalised(for: rung)
        return value.withExposedBytes { rung.validateStoredValue($0) } == .valid ? value : nil
    }

    /// The password itself, where the rung's clients send it in a form that gives it away; nil on other
    /// rungs, and for a value that is not well formed.
    package func password(on rung: Rung) -> Secret? {
        let value = normalised(for: rung)
        guard value.count <= PasswordField.longest else { return nil }
        switch rung {
        case .plainGet, .plainPost: return value
        case .base64:
            var password = ByteBuffer(capacity: PasswordField.longest)
            let isRead = value.withExposedBytes {
                Base64.decode($0, as: .standard, into: &password, limit: PasswordField.longest)
            }
            return isRead ? Secret(copying: password.span) : nil
        case .md5, .md5Salt, .hmacMD5, .hmacMD5Time: return nil
        }
    }
}

extension Rung {
    /// Whether a value could be what a server in the field keeps for this rung; for values that are imported.
    package func validateStoredValue(_ value: Span<UInt8>) -> StoredValueValidity {
        guard value.count <= PasswordField.longest else {
            return .invalid("at most \(PasswordField.longest) bytes")
        }
        guard !value.isEmpty else { return .invalid("a value that is not empty") }
        switch self {
        case .plainGet, .plainPost:
            for index in 0..<value.count where value[index] == 0 { return .invalid("a password without NUL") }
            return .valid
        case .base64:
            return Base64.isStrict(value, as: .standard) ? .valid : .invalid("padded Base64")
        case .md5, .md5Salt, .hmacMD5, .hmacMD5Time:
            guard value.count == 32 else { return .invalid("32 lower-case hexadecimal digits") }
            return Hex.decodeShort(value) == nil ? .invalid("32 lower-case hexadecimal digits") : .valid
        }
    }

    package enum StoredValueValidity: Sendable, Equatable {
        case valid
        /// What was expected.
        case invalid(String)
    }
}

extension Secret {
    fileprivate func mapped(_ change: (UInt8) -> UInt8) -> Secret {
        withExposedBytes { bytes in
            var copy = ByteBuffer(capacity: bytes.count)
            for index in 0..<bytes.count { copy.append(change(bytes[index])) }
            return Secret(copying: copy.span)
        }
    }
}
