import CountersignGate
import CountersignWire

extension AccountIdentity {
    /// As the backend is told. A name that could be read as a user id has its first digit escaped, or whoever takes the name
    /// `42` would be taken for user 42.
    package init(_ account: Account) {
        if let userID = account.userID {
            self.init(number: account.number, subject: "\(userID)")
            return
        }
        let bytes = account.name.bytes
        let readsAsNumber = bytes.allSatisfy { ASCII.isDigit($0) }
        var text = ByteBuffer(capacity: bytes.count * 3)
        for (index, byte) in bytes.enumerated() {
            let isVisible = byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "%")
            if isVisible, index > 0 || !readsAsNumber { text.append(byte) } else { Percent.escape(byte, into: &text) }
        }
        self.init(number: account.number, subject: text.span.text)
    }
}
