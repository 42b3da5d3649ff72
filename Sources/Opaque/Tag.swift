import CountersignSeal

/// What HMAC-SHA512 gives: an envelope's tag, and the two sides' MACs. Source: RFC 9807 §2: Nm.
typealias Tag = FixedBytes<Length64>

extension Secret {
    /// Where OPAQUE decides: whether the tag that came is the one that was to come. In constant time.
    func equals(_ tag: Tag) -> Bool {
        withExposedBytes { ConstantTime.equals($0, tag.array.span) == .equal }
    }
}
