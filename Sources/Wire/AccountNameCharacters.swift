/// The characters that an account name may contain. Listed as numbers, because the categories that they come
/// from may differ between versions of Unicode, and client and server must agree for the lifetime of the
/// account.
package enum AccountNameCharacters {
    /// Only characters up to this version of Unicode. Every later version normalises a text of such
    /// characters to the same form (Unicode's stability policy), so the rule is the same on every device.
    /// Source: UAX #15 §3.
    package static let unicode = (major: 14, minor: 0)

    /// Why a character is not allowed in a name, as part of a message.
    package enum Rejection: String, Sendable, CustomStringConvertible {
        case nul = "a NUL"
        case control = "a control character"
        case format = "a format character"
        case invisible = "an invisible character"
        case space = "white space other than the plain space"
        case privateUse = "a private character"
        case unknown = "a character that Unicode 14.0 does not have"

        package var description: String { rawValue }
    }

    /// Nil if the character is allowed.
    package static func rejection(of scalar: Unicode.Scalar) -> Rejection? {
        let number = scalar.value
        if number < 0x80 {
            switch number {
            case 0: return .nul
            case 0x20..<0x7F: return nil
            default: return .control
            }
        }
        switch number {
        case 0x80...0x9F: return .control
        case 0xA0, 0x1680, 0x2000...0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000: return .space
        case 0xE000...0xF8FF, 0xF0000...0xFFFFD, 0x100000...0x10FFFD: return .privateUse
        default: break
        }
        if isListed(number, in: format) { return .format }
        if isListed(number, in: invisible) { return .invisible }
        return isKnown(scalar) ? nil : .unknown
    }

    /// Assigned, and old enough. Noncharacters have an age too, but no character will ever be there.
    private static func isKnown(_ scalar: Unicode.Scalar) -> Bool {
        guard !scalar.properties.isNoncharacterCodePoint, let age = scalar.properties.age else {
            return false
        }
        return (age.major, age.minor) <= unicode
    }

    private static func isListed(_ number: UInt32, in ranges: [ClosedRange<UInt32>]) -> Bool {
        ranges.contains { $0.contains(number) }
    }

    /// General category Cf. Source: Unicode 14.0, DerivedGeneralCategory.txt.
    private static let format: [ClosedRange<UInt32>] = [
        0xAD...0xAD, 0x600...0x605, 0x61C...0x61C, 0x6DD...0x6DD, 0x70F...0x70F, 0x890...0x891, 0x8E2...0x8E2,
        0x180E...0x180E, 0x200B...0x200F, 0x202A...0x202E, 0x2060...0x2064, 0x2066...0x206F, 0xFEFF...0xFEFF,
        0xFFF9...0xFFFB, 0x110BD...0x110BD, 0x110CD...0x110CD, 0x13430...0x13438, 0x1BCA0...0x1BCA3,
        0x1D173...0x1D17A, 0xE0001...0xE0001, 0xE0020...0xE007F,
    ]

    /// Shown as nothing, so that two names would look alike: Default_Ignorable_Code_Point without the above.
    /// Source: Unicode 14.0, DerivedCoreProperties.txt.
    private static let invisible: [ClosedRange<UInt32>] = [
        0x34F...0x34F, 0x115F...0x1160, 0x17B4...0x17B5, 0x180B...0x180D, 0x180F...0x180F, 0x2065...0x2065,
        0x3164...0x3164, 0xFE00...0xFE0F, 0xFFA0...0xFFA0, 0xFFF0...0xFFF8, 0xE0000...0xE0FFF,
    ]
}
