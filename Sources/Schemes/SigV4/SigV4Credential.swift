import CountersignWire

extension SigV4Buffers {
    /// The longest credential: key id, day, region, service, terminator.
    private static let longestCredential = KeyID.longest + 8 + 2 * SigV4Buffers.longestName + 16
    /// Regions and services have names of letters and digits, with `-`, `_` and `.` between them.
    private static let longestName = 64

    /// `KEYID/yyyymmdd/region/service/aws4_request`. The key id may hold slashes: it is what the others
    /// leave.
    mutating func readCredential(_ slice: ByteRange) throws(Refusal) {
        let slashes = try slashes(in: slice)
        let start = Int(slice.start)
        authorization.keyID = ByteRange(from: start, to: start + slashes.0)
        authorization.scope = ByteRange(from: start + slashes.0 + 1, to: Int(slice.end))
        authorization.service = ByteRange(from: start + slashes.2 + 1, to: start + slashes.3)
    }

    /// Where the last four of a well-formed credential are, from its beginning.
    private func slashes(in slice: ByteRange) throws(Refusal) -> (Int, Int, Int, Int) {
        let text = words.span.extracting(slice.range)
        guard text.count <= SigV4Buffers.longestCredential else {
            throw Refusal(
                .malformed, detail: "Credential: longer than \(SigV4Buffers.longestCredential) characters")
        }
        var slashes = (0, 0, 0, 0)
        var found = 4
        var index = text.count - 1
        while index >= 0, found > 0 {
            if text[index] == UInt8(ascii: "/") {
                found -= 1
                switch found {
                case 0: slashes.0 = index
                case 1: slashes.1 = index
                case 2: slashes.2 = index
                default: slashes.3 = index
                }
            }
            index -= 1
        }
        guard found == 0 else {
            throw Refusal(
                .malformed, detail: "Credential: expected KEYID/yyyymmdd/region/service/aws4_request")
        }
        guard text.extracting(slashes.3 + 1..<text.count).matches("aws4_request") else {
            throw Refusal(.malformed, detail: "Credential: expected aws4_request at the end")
        }
        let day = text.extracting(slashes.0 + 1..<slashes.1)
        guard SigV4Buffers.isDay(day) else {
            throw Refusal(.malformed, detail: "Credential: expected a day such as 20260131")
        }
        let region = text.extracting(slashes.1 + 1..<slashes.2)
        let service = text.extracting(slashes.2 + 1..<slashes.3)
        guard SigV4Buffers.isName(region), SigV4Buffers.isName(service) else {
            throw Refusal(
                .malformed,
                detail: "Credential: expected region and service of 1 to 64 letters, digits, `-`, `_` and `.`"
            )
        }
        return slashes
    }

    /// The day in the scope, which chooses the key, is that of the time which is signed.
    func checkDay() throws(Refusal) {
        let scope = words.span.extracting(authorization.scope.range)
        let timestamp = words.span.extracting(authorization.timestamp.range)
        guard scope.extracting(0..<8).matches(timestamp.extracting(0..<8)) else {
            throw Refusal(
                .malformed, detail: "Credential: its day is not that of the request's time, \(timestamp.text)"
            )
        }
    }

    private static func isDay(_ text: Span<UInt8>) -> Bool {
        guard text.count == 8 else { return false }
        for index in 0..<8 where !ASCII.isDigit(text[index]) { return false }
        return true
    }

    private static func isName(_ text: Span<UInt8>) -> Bool {
        guard text.count > 0, text.count <= longestName else { return false }
        for index in 0..<text.count {
            switch text[index] {
            case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): continue
            case let byte where ASCII.isLetter(byte) || ASCII.isDigit(byte): continue
            default: return false
            }
        }
        return true
    }
}
