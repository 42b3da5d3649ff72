// Account names and the files that accounts are imported from: a name has one spelling, a file the same lines however it
// comes in pieces, and nothing that was taken is out of bounds.
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
    precondition(apart.utf8.count > AccountName.longestTyped || (try? AccountName(normalizing: apart)) == name)
}

extension String {
    /// Syllables of Hangul taken apart by arithmetic: another spelling, made without the tables. Source: Unicode §3.12.
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

/// What came of each line, in words.
private func lines(of bytes: Span<UInt8>, _ format: ImportReader.Format, pieces: Int) -> [String] {
    var lines: [String] = []
    func take(_ line: ImportReader.Line) {
        switch line {
        case .problem(let problem): lines.append(problem.description)
        case .account(let account):
            precondition(account.userID.number > 0)
            account.value.withExposedBytes { value in
                precondition(account.rung.canKeep(value) == .this)
                lines.append("\(account.name) \(account.userID.number) \(account.rung) \(value.text)")
            }
        }
    }
    var reader = ImportReader(format)
    do throws(ImportProblem) {
        var start = 0
        while start < bytes.count {
            let end = min(start + pieces, bytes.count)
            try reader.feed(bytes.extracting(start..<end), take)
            start = end
        }
        try reader.finish(take)
    } catch {
        lines.append("stopped: \(error)")
    }
    return lines
}
