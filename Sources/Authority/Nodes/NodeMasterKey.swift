import CountersignSeal
import CountersignWire

/// What a node says of its master key, so that the key is not replaced under a node that could not go on.
package struct NodeMasterKey: Sendable, Equatable {
    /// Whether the node has its key from its data folder, where a rotation replaces it.
    package var isInFolder: Bool
    /// The hexadecimal id of the key in the node's `master.key.next`; nil if the folder has no such file.
    package var next: String?

    package init(isInFolder: Bool, next: String? = nil) {
        (self.isInFolder, self.next) = (isInFolder, next)
    }

    private static let (folder, elsewhere) = ("folder", "elsewhere")

    /// As in the node's row: `folder` or `elsewhere`, and the id.
    package var text: String {
        ([isInFolder ? NodeMasterKey.folder : NodeMasterKey.elsewhere] + [next].compactMap(\.self))
            .joined(separator: " ")
    }

    /// Nil for the row of a node that says nothing of it.
    package init?(text: String) {
        let words = text.split(separator: " ").map(String.init)
        guard let place = words.first, words.count <= 2,
            [NodeMasterKey.folder, NodeMasterKey.elsewhere].contains(place)
        else { return nil }
        self.init(isInFolder: place == NodeMasterKey.folder, next: words.dropFirst().first)
    }
}

extension Deployment {
    /// What this process says of its key as a node. A next key that cannot be read is not there.
    package func nodeMasterKey() -> NodeMasterKey {
        NodeMasterKey(
            isInFolder: (try? masterKeySource.isInFolder()) ?? false,
            next: (try? masterKeySource.findNext())?.idText)
    }
}
