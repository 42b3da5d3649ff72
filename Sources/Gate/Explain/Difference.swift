import CountersignSchemes
import CountersignWire

/// The first place where the text that was signed leaves the one that was received.
package struct Difference: Sendable, Equatable {
    /// Which part of the request it is, in the scheme's own word: `"@path"`, `method`, a parameter's name.
    package var component: String
    /// From 1.
    package var line: Int
    /// Of the line's bytes, from 1.
    package var byte: Int
    /// That line, or that parameter, as it was signed; empty where it is missing.
    package var signed: String
    /// The same as it was received.
    package var received: String

    /// Nil where both are the same.
    init?(signed: Spelling, received: Spelling) {
        if !received.canonicalRequest.isEmpty, signed.canonicalRequest != received.canonicalRequest {
            self.init(signed: signed.canonicalRequest, received: received.canonicalRequest, scheme: received.scheme)
        } else {
            self.init(signed: signed.text.shown, received: received.text.shown, scheme: received.scheme)
        }
    }

    /// Two strings to sign, without their secrets.
    package init?(signed: [UInt8], received: [UInt8], scheme: SchemeName) {
        guard signed != received else { return nil }
        let (left, right) = (signed.split(at: .newline), received.split(at: .newline))
        let index =
            zip(left, right).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? min(left.count, right.count)
        let (here, there) = (index < left.count ? left[index] : [], index < right.count ? right[index] : [])
        line = index + 1
        byte = Difference.common(here, there) + 1
        let separator: UInt8 = .ampersand
        if Difference.isParameters(scheme, line: index) {
            let (a, b) = (here.split(at: separator), there.split(at: separator))
            let part = zip(a, b).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? min(a.count, b.count)
            let (mine, theirs) = (part < a.count ? a[part] : [], part < b.count ? b[part] : [])
            component =
                (theirs.isEmpty ? mine : theirs).prefix { $0 != .equals }.reduce(into: []) { $0.append($1) }.text
            (self.signed, self.received) = (Difference.short(mine), Difference.short(theirs))
        } else {
            component = Difference.name(scheme, line: index, there.isEmpty ? here : there)
            (self.signed, self.received) = (Difference.short(here), Difference.short(there))
        }
    }

    private static func common(_ left: [UInt8], _ right: [UInt8]) -> Int {
        zip(left, right).prefix { $0 == $1 }.count
    }

    private static func isParameters(_ scheme: SchemeName, line: Int) -> Bool {
        switch scheme {
        case .formMD5: true
        case .authV1, .authV2, .authV4: line >= 2
        case .messageSignatures, .sigV4, .token: false
        }
    }

    private static func name(_ scheme: SchemeName, line: Int, _ text: [UInt8]) -> String {
        let words: [String]
        switch scheme {
        case .messageSignatures: return Array(text.prefix { $0 != UInt8(ascii: ":") }).text
        case .sigV4:
            // Of the canonical request, whose fields have their names before them.
            if line > 2, let colon = text.firstIndex(of: UInt8(ascii: ":")) { return Array(text[..<colon]).text }
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

extension Text {
    /// With a mark where the secret goes.
    var shown: [UInt8] {
        secretAt > 0 ? Array(bytes[..<secretAt]) + [UInt8]("<secret>") + bytes[secretAt...] : bytes
    }
}
