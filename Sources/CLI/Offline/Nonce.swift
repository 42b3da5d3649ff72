import CountersignSchemes
import CountersignWire

extension Nonce {
    /// One that was given, checked: 8 to 64 letters, digits, `-` and `_`.
    static func read(_ text: String) throws(Fault) -> String {
        let bytes = text.utf8
        guard (8...64).contains(bytes.count),
            bytes.allSatisfy({ ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == 0x2D || $0 == 0x5F })
        else { throw Fault(.usage, "--nonce: expected 8 to 64 letters, digits, `-` and `_`") }
        return text
    }
}
