import CountersignWire

/// How the servers behind us read a parameter's name, which some do far more freely than a form is signed. PHP leaves out leading
/// spaces, stops at a NUL, and makes an array of `name[x]`; Rack and qs read `[name]` as `name`; qs, Spring and others read `name.x` as a
/// part of it; ASP.NET and Go's JSON know no case; many trim.
enum ParameterName {
    enum Reading {
        /// Everybody reads it as the word.
        case exact
        /// Somebody does.
        case mistakable
        case other
    }

    /// `name` is decoded.
    static func reading(of name: Span<UInt8>, as word: StaticString) -> Reading {
        word.withUTF8Buffer { reading(of: name, as: $0.span) }
    }

    /// `name` is decoded.
    static func reading(of name: Span<UInt8>, as word: Span<UInt8>) -> Reading {
        if name.matches(word) { return .exact }
        let length = word.count
        var start = 0
        while start < name.count, isPassedOver(name[start]) { start += 1 }
        guard name.count - start >= length else { return .other }
        for index in 0..<length where !isAlike(name[start + index], to: word[index]) { return .other }
        let end = start + length
        return end == name.count || isPassedOver(name[end]) || name[end] == UInt8(ascii: ".") ? .mistakable : .other
    }

    /// PHP writes `_` for what its names of variables cannot hold.
    private static func isAlike(_ byte: UInt8, to expected: UInt8) -> Bool {
        if ASCII.lowercased(byte) == ASCII.lowercased(expected) { return true }
        return expected == UInt8(ascii: "_")
            && (byte == UInt8(ascii: ".") || byte == UInt8(ascii: " ") || byte == UInt8(ascii: "["))
    }

    /// White space, control characters and brackets: before the word somebody leaves them out, behind it somebody stops there.
    private static func isPassedOver(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == 0x7F || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "]")
    }
}
