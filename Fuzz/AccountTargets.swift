// Account names and import files: a name has one canonical form, a file yields the same rows however it is
// split into pieces, and accepted values are within their bounds.
import CountersignAuthority
import CountersignSchemes
import CountersignSeal
import CountersignWire

@Sendable func fuzzAccountName(_ bytes: Span<UInt8>) {
    guard let name = try? AccountName(normalizing: bytes) else {
        precondition((try? AccountName(checking: bytes)) == nil)
        return
    }
    precondition((1...AccountName.longest).contains(name.bytes.count))
    precondition((try? AccountName(normalizing: name.bytes.span)) == name)
    precondition((try? AccountName(checking: name.bytes.span)) == name)
    precondition(((try? AccountName(checking: bytes)) != nil) == bytes.matches(name.bytes.span))
    // The other normal form of the same text is the same account.
    let apart = name.description.decomposedByHand
    precondition(
        apart.utf8.count > AccountName.longestTyped || (try? AccountName(normalizing: apart)) == name)
}

extension String {
    /// The text with its Hangul syllables decomposed by arithmetic, without the tables. Source: Unicode
    /// §3.12.
    fileprivate var decomposedByHand: String {
        var text = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            guard (0xAC00...0xD7A3).contains(scalar.value) else {
                text.append(scalar)
                continue
            }
            let index = scalar.value - 0xAC00
            let parts = [0x1100 + index / 588, 0x1161 + index % 588 / 28, 0x11A7 + index % 28]
            for part in parts where part != 0x11A7 { Unicode.Scalar(part).map { text.append($0) } }
        }
        return String(text)
    }
}

@Sendable func fuzzImport(_ bytes: Span<UInt8>) {
    for format in [ImportReader.Format.csv, .jsonLines] {
        let whole = lines(of: bytes, format, pieces: max(bytes.count, 1))
        precondition(whole == lines(of: bytes, format, pieces: 1))
        precondition(whole.count <= bytes.count + 1)
    }
}

/// A description of the result of each line.
private func lines(of bytes: Span<UInt8>, _ format: ImportReader.Format, pieces: Int) -> [String] {
    var lines: [String] = []
    func take(_ line: ImportReader.Line) {
        switch line {
        case .error(let error): lines.append(error.description)
        case .account(let account):
            precondition(account.userID.number > 0)
            account.value.withExposedBytes { value in
                precondition(account.rung.validateStoredValue(value) == .valid)
                lines.append("\(account.name) \(account.userID.number) \(account.rung) \(value.text)")
            }
        }
    }
    var reader = ImportReader(format)
    do {
        var start = 0
        while start < bytes.count {
            let end = min(start + pieces, bytes.count)
            try reader.feed(bytes.extracting(start..<end), take: take)
            start = end
        }
        try reader.finish(take)
    } catch {
        lines.append("stopped: \(error)")
    }
    return lines
}
