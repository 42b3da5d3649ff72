import CountersignSeal

/// A password as bytes. Which bytes stand for what the user typed is the caller's to say, and must not change.
package struct Password: Sendable {
    let bytes: Secret

    /// Nil for more than 65,535 bytes, whose length OPAQUE cannot write. Source: RFC 9497 §1.2.
    package init?(_ bytes: Secret) {
        guard bytes.count <= Int(UInt16.max) else { return nil }
        self.bytes = bytes
    }
}
