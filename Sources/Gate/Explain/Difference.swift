import CountersignSchemes
import CountersignWire

/// The first place where the signed text differs from the received text.
package struct Difference: Sendable, Equatable {
    /// The part of the request in the scheme's own terms: `"@path"`, `method`, a parameter's name.
    package var component: String
    /// From 1.
    package var line: Int
    /// The byte within the line, from 1.
    package var byte: Int
    /// That line or parameter as it was signed; empty if it is missing.
    package var signed: String
    /// The same as it was received.
    package var received: String

    /// Nil if both are equal.
    init?(signed: SigningInput, received: SigningInput) {
        if !received.canonicalRequest.isEmpty, signed.canonicalRequest != received.canonicalRequest {
            self.init(
                signed: signed.canonicalRequest, received: received.canonicalRequest, scheme: received.scheme)
        } else {
            self.init(
                signed: signed.text.displayBytes, received: received.text.displayBytes,
                scheme: received.scheme)
        }
    }

    /// Two strings to sign, without their secrets.
    package init?(signed: [UInt8], received: [UInt8], scheme: SchemeName) {
        guard signed != received else { return nil }
        let (left, right) = (signed.split(at: .newline), received.split(at: .newline))
        let index =
            zip(left, right).enumerated().first { $0.element.0 != $0.element.1 }?.offset
            ?? min(left.count, right.count)
        let (here, there) = (index < left.count ? left[index] : [], index < right.count ? right[index] : [])
        line = index + 1
        byte = Difference.commonPrefixLength(of: here, and: there) + 1
        let separator: UInt8 = .ampersand
        if Difference.isParameters(scheme, line: index) {
            let (a, b) = (here.split(at: separator), there.split(at: separator))
            let part =
                zip(a, b).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? min(a.count, b.count)
            let (mine, theirs) = (part < a.count ? a[part] : [], part < b.count ? b[part] : [])
            component =
                (theirs.isEmpty ? mine : theirs).prefix { $0 != .equals }.reduce(into: []) { $0.append($1) }
                .text
            (self.signed, self.received) = (Difference.short(mine), Difference.short(theirs))
        } else {
            component = Difference.componentName(scheme, line: index, text: there.isEmpty ? here : there)
            (self.signed, self.received) = (Difference.short(here), Difference.short(there))
        }
    }

    private static func commonPrefixLength(of left: [UInt8], and right: [UInt8]) -> Int {
        zip(left, right).prefix { $0 == $1 }.count
    }

    private static func isParameters(_ scheme: SchemeName, line: Int) -> Bool {
        guard let first = scheme.layout?.firstParameterLine else { return false }
        return line >= first
    }

    private static func componentName(_ scheme: SchemeName, line: Int, text: [UInt8]) -> String {
        let colon = UInt8(ascii: ":")
        switch scheme.layout?.lines {
        case .named: return Array(text.prefix { $0 != colon }).text
        case .positional(let names, _) where line < names.count: return names[line]
        case .positional(_, .fields):
            if let end = text.firstIndex(of: colon) { return Array(text[..<end]).text }
            return "line \(line + 1)"
        case .positional(_, .unnamed), nil: return "line \(line + 1)"
        }
    }

    private static func short(_ text: [UInt8]) -> String {
        text.count <= 512 ? text.text : Array(text.prefix(512)).text + "… (\(text.count) bytes)"
    }
}

extension SigningString {
    /// With a placeholder for the secret.
    var displayBytes: [UInt8] {
        secretAt > 0 ? Array(bytes[..<secretAt]) + [UInt8]("<secret>") + bytes[secretAt...] : bytes
    }
}
