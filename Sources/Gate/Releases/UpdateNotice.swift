import CountersignWire

/// Told to callers whose version will go: when, and where the next one is.
package struct UpdateNotice: Sendable, Equatable {
    /// Warn or read-only.
    package let stage: ReleaseKey.Stage
    /// When it goes: whole Unix seconds.
    package let at: Int64
    package let link: String

    init(_ stage: ReleaseKey.Stage, _ retirement: ReleaseKey.Retirement) {
        self.stage = stage
        at = retirement.at
        link = retirement.updateURL
    }

    /// The name of the field that says so on every answer.
    package static let fieldName = "Countersign-Update"

    /// `stage=warn, at=1769817600, link="https://…"`: a dictionary of RFC 8941 §3.2.
    package var fieldValue: String {
        "stage=\(stage.rawValue), at=\(at), link=\"\(UpdateNotice.quotable(link))\""
    }

    /// What a string of RFC 8941 §3.3.3 cannot hold, as a URL would have it.
    private static func quotable(_ link: String) -> String {
        var text: [UInt8] = []
        for byte in link.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), ...0x20, 0x7F...: Percent.encode([byte].span, into: &text)
            default: text.append(byte)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
