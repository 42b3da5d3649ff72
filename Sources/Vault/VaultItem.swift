import CountersignSeal

/// The contents of an item: text, or any bytes. Both are secrets: they are not printed, and are wiped with
/// the last reference.
public struct ItemContents: Sendable {
    package enum Kind: UInt8, Sendable { case bytes = 0, text = 1 }

    package let kind: Kind
    package let secret: Secret

    /// Any bytes. What was given is copied; the copy alone is wiped.
    public static func bytes(_ bytes: [UInt8]) -> ItemContents { .bytes(Secret(copying: bytes.span)) }

    /// A text. What was given is copied; the copy alone is wiped.
    public static func text(_ text: String) -> ItemContents {
        let bytes = Array(text.utf8)
        return .text(Secret(copying: bytes.span))
    }

    package static func bytes(_ secret: Secret) -> ItemContents { ItemContents(kind: .bytes, secret: secret) }

    /// UTF-8.
    package static func text(_ secret: Secret) -> ItemContents { ItemContents(kind: .text, secret: secret) }

    /// Nil where it is not a text.
    var text: String? { kind == .text ? String(utf8: bytes) : nil }

    var bytes: [UInt8] { secret.withExposedBytes { span in span.indices.map { span[$0] } } }
}

/// Names one writing of one item. Drawn at random for each, not counted: a counter that starts again after
/// the item was removed would take a writer from the time before for one from the time after.
public struct ItemVersion: Sendable, Equatable {
    static let count = 16

    let bytes: [UInt8]

    static func next(_ random: some RandomSource = SystemRandom()) -> ItemVersion {
        ItemVersion(bytes: random.bytes(count))
    }
}

/// An item as it was read.
public struct VaultItem: Sendable {
    package let contents: ItemContents
    /// The version that was read. A change states it and is refused if another process wrote the item since.
    public let version: ItemVersion

    private static let layout: UInt8 = 1

    init(_ contents: ItemContents, version: ItemVersion) {
        self.contents = contents
        self.version = version
    }

    /// Nil if the item was written as bytes. The copy is not wiped: use it briefly.
    public var text: String? { contents.text }

    /// Of a text, its UTF-8. The copy is not wiped: use it briefly.
    public var bytes: [UInt8] { contents.bytes }

    /// Nil where `stored` was not written by ``stored``.
    package init?(stored: Secret) {
        let start = 2 + ItemVersion.count
        guard stored.count >= start else { return nil }
        let head = stored.withExposedBytes { bytes in (0..<start).map { bytes[$0] } }
        guard head[0] == VaultItem.layout, let kind = ItemContents.Kind(rawValue: head[1]) else { return nil }
        contents = ItemContents(kind: kind, secret: stored.part(start..<stored.count))
        version = ItemVersion(bytes: Array(head[2...]))
    }

    /// What a back end keeps: `1 ‖ kind (1) ‖ version (16) ‖ contents`.
    package var stored: Secret {
        let head = [VaultItem.layout, contents.kind.rawValue] + version.bytes
        return Secret(joining: [Secret(copying: head.span), contents.secret])
    }

    /// The same contents under a new version, as if they were written again.
    package var rewritten: VaultItem { VaultItem(contents, version: .next()) }
}
