/// The name of an account in its canonical form: canonically composed (NFC), ASCII letters in lower case.
/// Two names denote the same account if, and only if, their bytes are equal. Source: docs/protocol.md,
/// "Account names".
///
/// Client and server share this rule, because OPAQUE binds the name: a client with another normal form could
/// not sign in.
package struct AccountName: Sendable, Hashable, CustomStringConvertible {
    /// Bytes of UTF-8, after normalisation.
    package static let longest = 128
    /// The limit in bytes before normalisation: composing may shorten a text, and the input must be bounded.
    package static let longestTyped = 512

    /// UTF-8.
    package let bytes: [UInt8]

    package var description: String { String(decoding: bytes, as: UTF8.self) }

    /// Converts a name that a person typed, or that an imported database contains, to the canonical form.
    /// Used by clients.
    package init(normalizing text: Span<UInt8>) throws(AccountNameError) {
        guard !text.isEmpty else { throw .empty }
        guard text.count <= AccountName.longestTyped else { throw .tooLong }
        guard let typed = String(utf8: text) else {
            throw .notUTF8
        }
        for scalar in typed.unicodeScalars {
            if let reason = AccountNameCharacters.rejection(of: scalar) {
                throw .character(scalar.value, reason)
            }
        }
        // Composed first, so that `A` + ring and `Å` meet before one of them is taken for an ASCII letter.
        // Composed again, because some letters compose in lower case only: `J` + caron stays two scalars, `j`
        // + caron does not.
        let composed = typed.composed
        let lowered = String(decoding: composed.map(ASCII.lowercased), as: UTF8.self)
        bytes = lowered.composed
        guard bytes.count <= AccountName.longest else { throw .tooLong }
        try AccountName.checkSpaces(bytes)
    }

    package init(normalizing text: String) throws(AccountNameError) {
        try self.init(normalizing: Array(text.utf8).span)
    }

    /// Accepts a received name only in the canonical form. Used by servers, which correct nothing, because
    /// the client has bound the bytes that it sent.
    package init(checking text: Span<UInt8>) throws(AccountNameError) {
        try self.init(normalizing: text)
        guard bytes.span.matches(text) else { throw .notNormal }
    }

    private static func checkSpaces(_ bytes: [UInt8]) throws(AccountNameError) {
        let space = UInt8(ascii: " ")
        guard bytes.first != space, bytes.last != space else { throw .outerSpace }
        for index in bytes.indices.dropFirst() where bytes[index] == space && bytes[index - 1] == space {
            throw .doubleSpace
        }
    }

    /// Why a text is not an account name.
    package enum AccountNameError: Error, Sendable, Equatable, CustomStringConvertible {
        case empty
        case tooLong
        case notUTF8
        /// The scalar's number.
        case character(UInt32, AccountNameCharacters.Rejection)
        case outerSpace
        case doubleSpace
        /// Only from ``AccountName/init(checking:)``.
        case notNormal

        package var description: String {
            switch self {
            case .empty: "an account name needs at least one character"
            case .tooLong: "an account name has at most \(AccountName.longest) bytes of UTF-8"
            case .notUTF8: "an account name is UTF-8"
            case .character(let number, let reason):
                "an account name cannot hold \(reason) (\(spelled(number)))"
            case .outerSpace: "an account name neither begins nor ends with a space"
            case .doubleSpace: "an account name has no two spaces in a row"
            case .notNormal:
                "the account name is not normalised: NFC, then ASCII letters in lower case, then NFC"
            }
        }

        private func spelled(_ number: UInt32) -> String {
            let digits = String(number, radix: 16, uppercase: true)
            return "U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        }
    }
}

extension String {
    /// The text's UTF-8 in Unicode's normalisation form C. Source: UAX #15.
    ///
    /// The standard library normalises for every comparison of strings; it offers the result under this name
    /// only.
    package var composed: [UInt8] { _nfcCodeUnits }
}
