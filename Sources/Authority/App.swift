import CountersignGate
import CountersignWire

/// The name of an app, as the team calls it: 1 to 64 lower-case letters, digits, `-` and `.`.
package struct AppName: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    package init?(_ text: String) {
        let bytes = text.utf8
        guard (1...64).contains(bytes.count), bytes.allSatisfy(AppName.isAllowed) else { return nil }
        description = text
    }

    /// For arguments of commands: the same, with a message.
    package init(argument text: String) throws(Fault) {
        guard let name = AppName(text) else {
            throw Fault(.usage, "app name `\(text)`: expected 1 to 64 lower-case letters, digits, `-` and `.`")
        }
        self = name
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "-"), UInt8(ascii: "."): true
        default: false
        }
    }
}

/// An app and what its team decided about it.
package struct App: Sendable, Equatable {
    package var name: AppName
    /// Whole Unix seconds.
    package var created: Int64
    /// Only what was set; the rest is at its default. By the key's name.
    package var settings: [String: StoredSetting]

    package init(name: AppName, created: Int64, settings: [String: StoredSetting] = [:]) {
        self.name = name
        self.created = created
        self.settings = settings
    }

    /// The rules the gate judges this app's callers by, where their release has none of its own.
    package func policy() throws(Fault) -> Policy { try policy(over: [:]) }

    /// The rules for that release's callers: each setting is the release's, else the app's, else the default.
    package func policy(for release: Release) throws(Fault) -> Policy { try policy(over: release.settings) }

    private func policy(over own: [String: String]) throws(Fault) -> Policy {
        var policy = Policy()
        policy.routes = try routes()
        for (name, setting) in settings
        where own[name] == nil && name != App.routesSetting && !RefusalTextSetting.isOne(name) {
            if case .text(let text) = setting { try apply(name, text, to: &policy) }
        }
        for (name, text) in own where !RefusalTextSetting.isOne(name) {
            try apply(name, text, to: &policy)
        }
        return policy
    }

    private func apply(_ name: String, _ text: String, to policy: inout Policy) throws(Fault) {
        guard let key = PolicyKey.all.first(where: { $0.name == name }), key.apply(&policy, text) != nil else {
            throw Fault(.failed, "app \(self.name): policy \(name): the store holds what this build cannot read")
        }
    }
}

/// A policy setting as the store keeps it.
package enum StoredSetting: Sendable, Equatable {
    case text(String)
    /// A secret, under the master key.
    case sealed([UInt8])
}
