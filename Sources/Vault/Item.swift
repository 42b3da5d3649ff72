import CountersignSeal

/// What an item holds: text, or any bytes. Both are secrets.
package struct ItemContents: Sendable {
    package enum Kind: UInt8, Sendable { case bytes = 0, text = 1 }

    package let kind: Kind
    package let secret: Secret

    package static func bytes(_ secret: Secret) -> ItemContents { ItemContents(kind: .bytes, secret: secret) }

    /// UTF-8.
    package static func text(_ secret: Secret) -> ItemContents { ItemContents(kind: .text, secret: secret) }
}

/// Names one writing of one item. Drawn at random for each, not counted: a counter that starts again after the item was removed
/// would take a writer from the time before for one from the time after.
package struct ItemVersion: Sendable, Equatable {
    static let count = 16

    let bytes: [UInt8]

    static func next(_ random: some RandomSource = SystemRandom()) -> ItemVersion {
        ItemVersion(bytes: random.bytes(count))
    }
}

/// An item as it was read.
package struct Item: Sendable {
    package let contents: ItemContents
    package let version: ItemVersion

    private static let layout: UInt8 = 1

    init(_ contents: ItemContents, _ version: ItemVersion) {
        self.contents = contents
        self.version = version
    }

    /// Nil where `stored` was not written by ``stored``.
    init?(stored: Secret) {
        let start = 2 + ItemVersion.count
        guard stored.count >= start else { return nil }
        let head = stored.withExposedBytes { bytes in (0..<start).map { bytes[$0] } }
        guard head[0] == Item.layout, let kind = ItemContents.Kind(rawValue: head[1]) else { return nil }
        contents = ItemContents(kind: kind, secret: stored.part(start..<stored.count))
        version = ItemVersion(bytes: Array(head[2...]))
    }

    /// What a back end keeps: `1 ‖ kind (1) ‖ version (16) ‖ contents`.
    var stored: Secret {
        let head = [Item.layout, contents.kind.rawValue] + version.bytes
        return Secret(joining: [Secret(copying: head.span), contents.secret])
    }
}
