import CountersignWire

/// What clients are told of pins: a signed manifest for each app that has one, as whoever holds the offline key has made it.
/// Nothing here can make or change one. Source: docs/protocol.md, "Pin manifests".
package struct PinManifests: Sendable, Equatable {
    /// The texts, by app.
    private var texts: [String: String] = [:]

    package init() {}

    /// From the store's bytes: a JSON object, a text for each app.
    init(_ stored: [UInt8]) throws(Fault) {
        guard let members = (try? JSONReader.read(stored))?.root.members else { throw PinManifests.altered }
        for member in members {
            guard let text = member.value.string else { throw PinManifests.altered }
            texts[member.name] = text
        }
    }

    /// The text of an app's; nil where it has none.
    package func text(of app: AppName) -> String? { texts[app.description] }

    mutating func set(_ text: String, of app: AppName) { texts[app.description] = text }

    var stored: [UInt8] {
        let members = texts.sorted { $0.key < $1.key }.map { (name: $0.key, value: JSONValue.string($0.value)) }
        return Array(JSONValue.object(members).text.utf8)
    }

    private static var altered: Fault { Fault(.failed, "pin manifests: the store's value is not what was written") }
}

extension Deployment {
    package func pinManifests() throws(Fault) -> PinManifests { try pinManifests(in: store) }

    /// Puts a manifest in the place of `earlier` (nil: of none), and fails where another one stands there meanwhile. Whoever calls
    /// has checked the signature, and that the version is above the earlier one's.
    package func publish(
        pinManifest text: String, version: Int, of app: AppName, after earlier: String?
    ) throws(Fault) {
        _ = try self.app(app)
        let draft = recording(.pinsPublish, .app(app), [("version", .integer(Int64(version)))])
        let change: (any Store) throws(Fault) -> Void = { (store) throws(Fault) in
            var manifests = try self.pinManifests(in: store)
            guard manifests.text(of: app) == earlier else {
                throw Fault(.failed, "app \(app): another manifest was published meanwhile; nothing was changed")
            }
            manifests.set(text, of: app)
            try store.set(.pinManifests, to: manifests.stored, recording: draft)
        }
        for fault in try store.together([change]) { if let fault { throw fault } }
        generation.advance()
    }

    private func pinManifests(in store: any Store) throws(Fault) -> PinManifests {
        guard let stored = try store.value(of: .pinManifests) else { return PinManifests() }
        return try PinManifests(stored)
    }
}
