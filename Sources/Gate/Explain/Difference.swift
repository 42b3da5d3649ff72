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
        switch scheme {
        case .formMD5: true
        case .authV1, .authV2, .authV4: line >= 2
        case .messageSignatures, .sigV4, .token: false
        }
    }

    private static func componentName(_ scheme: SchemeName, line: Int, text: [UInt8]) -> String {
        let words: [String]
        switch scheme {
        case .messageSignatures: return Array(text.prefix { $0 != UInt8(ascii: ":") }).text
        case .sigV4:
            // In the canonical request, a field's line begins with its name.
            if line > 2, let colon = text.firstIndex(of: UInt8(ascii: ":")) {
                return Array(text[..<colon]).text
            }
            words = ["method", "path", "query"]
        case .authV1, .authV2: words = ["method", "path", "parameters"]
        case .authV4: words = ["method", "URL", "parameters"]
        case .formMD5, .token: words = []
        }
        return line < words.count ? words[line] : "line \(line + 1)"
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
