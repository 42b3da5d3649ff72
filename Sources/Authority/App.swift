import CountersignGate
import CountersignWire

/// The name of an app, as its team chose it: 1 to 64 lower-case letters, digits, `-` and `.`.
package struct AppName: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    package init?(_ text: String) {
        let bytes = text.utf8
        guard (1...64).contains(bytes.count), bytes.allSatisfy(AppName.isAllowed) else { return nil }
        description = text
    }

    /// The same for arguments of commands, with an error message.
    package init(argument text: String) throws(OperationalError) {
        guard let name = AppName(text) else {
            throw OperationalError(
                .usage,
                message: "app name `\(text)`: expected 1 to 64 lower-case letters, digits, `-` and `.`")
        }
        self = name
    }

    /// Parses the name of an app to be added. To a command, a name that begins with a hyphen is an option or
    /// standard input; to a shell or a browser, one that begins with a dot is a folder.
    package init(addedAs text: String) throws(OperationalError) {
        try self.init(argument: text)
        guard let first = text.utf8.first, ASCII.isLetter(first) || ASCII.isDigit(first) else {
            throw OperationalError(
                .usage, message: "app name `\(text)`: expected a name that begins with a letter or a digit")
        }
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "-"), UInt8(ascii: "."): true
        default: false
        }
    }
}

/// An app and the settings that its team chose.
package struct App: Sendable, Equatable {
    package var name: AppName
    /// Whole Unix seconds.
    package var created: Int64
    /// Only the settings that were set, by the key's name; all others have their default.
    package var settings: [String: StoredSetting]

    package init(name: AppName, created: Int64, settings: [String: StoredSetting] = [:]) {
        self.name = name
        self.created = created
        self.settings = settings
    }

    /// The policy for this app's callers whose release has no settings of its own.
    package func policy() throws(OperationalError) -> Policy { try policy(over: [:]) }

    /// The policy for that release's callers: each setting is the release's, else the app's, else the
    /// default.
    package func policy(for release: Release) throws(OperationalError) -> Policy {
        try policy(over: release.settings)
    }

    private func policy(over own: [String: String]) throws(OperationalError) -> Policy {
        var policy = Policy()
        policy.routes = try routes()
        for (name, setting) in settings
        where own[name] == nil && name != App.routesSetting && !RefusalTextSetting.isRefusalText(name) {
            if case .text(let text) = setting { try apply(name, value: text, to: &policy) }
        }
        for (name, text) in own where !RefusalTextSetting.isRefusalText(name) {
            try apply(name, value: text, to: &policy)
        }
        return policy
    }

    private func apply(_ name: String, value text: String, to policy: inout Policy) throws(OperationalError) {
        guard let key = PolicyKey.all.first(where: { $0.name == name }), key.apply(&policy, text) != nil
        else {
            throw OperationalError(
                .failed,
                message: "app \(self.name): policy \(name): this build cannot read the stored value")
        }
    }
}

/// A policy setting in the form that the store keeps.
package enum StoredSetting: Sendable, Equatable {
    case text(String)
    /// A secret, sealed under the master key.
    case sealed([UInt8])
}
