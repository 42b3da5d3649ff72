import CountersignSodium

/// Where MACs and digests that an attacker may steer are compared; nowhere else. The time taken depends on the
/// length alone, which is public.
package enum ConstantTime {
    package static func equals(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Verdict {
        guard left.count == right.count else { return .different }
        return left.withUnsafeBufferPointer { left in
            right.withUnsafeBufferPointer { right in
                guard let first = left.baseAddress, let second = right.baseAddress else { return .equal }
                return sodium_memcmp(first, second, left.count) == 0 ? .equal : .different
            }
        }
    }

    package enum Verdict: Sendable { case equal, different }
}
