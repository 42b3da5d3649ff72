import CountersignGate
import CountersignSchemes
import CountersignWire

/// One version of an app on one platform, and the key it signs with.
package struct Release: Sendable, Equatable {
    package var id: KeyID
    package var app: AppName
    package var platform: Platform
    package var version: Version
    package var scheme: SchemeName
    /// The key's bytes under the master key.
    package var sealedSecret: [UInt8]
    /// The key that is to follow it, under the master key; nil while there is none. Both verify.
    package var sealedNextSecret: [UInt8]?
    /// Whole Unix seconds.
    package var created: Int64
    package var retirement: ReleaseKey.Retirement?
    /// What was set for this release alone, by the policy key's name; the rest is the app's.
    package var settings: [String: String] = [:]

    package init(
        id: KeyID, app: AppName, platform: Platform, version: Version, scheme: SchemeName, sealedSecret: [UInt8],
        created: Int64, retirement: ReleaseKey.Retirement? = nil
    ) {
        self.id = id
        self.app = app
        self.platform = platform
        self.version = version
        self.scheme = scheme
        self.sealedSecret = sealedSecret
        self.created = created
        self.retirement = retirement
    }
}

/// `ios`, `android`, …: 1 to 32 letters, digits, `-` and `.`, kept in lower case because clients disagree on it.
package struct Platform: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    package init?(_ text: String) {
        guard let name = AppName(text.lowercased()), text.utf8.count <= 32 else { return nil }
        description = name.description
    }
}

/// An app's version as its clients write it: 1 to 32 visible ASCII characters.
package struct Version: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    package init?(_ text: String) {
        guard (1...32).contains(text.utf8.count), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        description = text
    }
}
