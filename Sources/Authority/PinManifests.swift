import CountersignWire

/// The pin manifests that clients receive: one text for each app that has one, signed offline. The server
/// cannot create or change one. Source: docs/protocol.md, "Pin manifests".
package struct PinManifests: Sendable, Equatable {
    /// The texts, by app.
    private var texts: [String: String] = [:]

    package init() {}

    /// From the store's bytes: a JSON object with a text for each app.
    init(_ stored: [UInt8]) throws(OperationalError) {
        guard let members = (try? JSONReader.read(stored))?.root.members else { throw PinManifests.altered }
        for member in members {
            guard let text = member.value.string else { throw PinManifests.altered }
            texts[member.name] = text
        }
    }

    /// The app's manifest; nil if it has none.
    package func text(of app: AppName) -> String? { texts[app.description] }

    mutating func set(_ text: String, of app: AppName) { texts[app.description] = text }

    var stored: [UInt8] {
        let members = texts.sorted { $0.key < $1.key }.map {
            (name: $0.key, value: JSONValue.string($0.value))
        }
        return JSONValue.object(members).bytes
    }

    private static var altered: OperationalError {
        OperationalError(.failed, message: "pin manifests: the value in the store is damaged")
    }
}

extension Deployment {
    package func pinManifests() throws(OperationalError) -> PinManifests { try pinManifests(in: store) }

    /// Replaces the manifest `earlier` (nil: none); throws if another manifest was published meanwhile. The
    /// caller has checked the signature, and that the version is above that of `earlier`.
    package func publish(
        pinManifest text: String, version: Int, of app: AppName, after earlier: String?
    ) throws(OperationalError) {
        _ = try self.app(app)
        let draft = auditDraft(
            for: .pinsPublish, on: .app(app), details: [("version", .integer(Int64(version)))])
        let change: (any Store) throws(OperationalError) -> Void = { (store) throws(OperationalError) in
            var manifests = try self.pinManifests(in: store)
            guard manifests.text(of: app) == earlier else {
                throw OperationalError(
                    .failed,
                    message: "app \(app): another manifest was published meanwhile; nothing was changed")
            }
            manifests.set(text, of: app)
            try store.set(.pinManifests, to: manifests.stored, recording: draft)
        }
        for fault in try store.applyTogether([change]) { if let fault { throw fault } }
        generation.advance()
    }

    private func pinManifests(in store: any Store) throws(OperationalError) -> PinManifests {
        guard let stored = try store.value(of: .pinManifests) else { return PinManifests() }
        return try PinManifests(stored)
    }
}
