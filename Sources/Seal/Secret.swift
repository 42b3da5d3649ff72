import CountersignSodium

// Spans of arrays, for the modules that import this one: the standard library's own property requires a newer
// system than iOS 16.
@_exported import CountersignMemory

/// A digest's bytes.
package typealias Digest16 = Bytes16
package typealias Digest32 = Bytes32
package typealias Digest64 = Bytes64

/// Secret bytes: wiped when the last reference is released, and never printed.
///
/// The bytes are on the heap behind a class because a struct cannot wipe its inline storage when it is
/// destroyed. They never change after `init`, so threads may share them. They are not locked in memory
/// individually, because locks apply to pages and do not nest; ``ProcessMemory`` keeps the whole process out
/// of core files instead.
package final class Secret: @unchecked Sendable, CustomStringConvertible, CustomReflectable {
    private let start: UnsafeMutableRawPointer
    package let count: Int

    /// Copies the bytes. The caller wipes the original.
    package init(copying bytes: Span<UInt8>) {
        count = bytes.count
        start = .allocate(byteCount: max(count, 1), alignment: 16)
        bytes.withUnsafeBytes { source in
            if let base = source.baseAddress { start.copyMemory(from: base, byteCount: source.count) }
        }
    }

    /// Copies the bytes and wipes the original.
    package convenience init(taking bytes: inout [UInt8]) {
        self.init(copying: bytes.span)
        bytes.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) }
    }

    /// `count` bytes from the kernel's generator.
    package init(random count: Int) {
        self.count = count
        start = .allocate(byteCount: max(count, 1), alignment: 16)
        randombytes_buf(start, count)
    }

    /// `count` bytes that `write` writes in place, so that no other copy of them remains.
    init<Failure: Error>(
        count: Int, write: (UnsafeMutableRawPointer) throws(Failure) -> Void
    ) throws(Failure) {
        self.count = count
        start = .allocate(byteCount: max(count, 1), alignment: 16)
        try write(start)
    }

    deinit {
        sodium_memzero(start, count)
        start.deallocate()
    }

    /// Passes the raw bytes to `body`, for the duration of the call. This is the only access to them from
    /// outside, so that every use can be found by its name.
    package func withExposedBytes<Result: ~Copyable, Failure: Error>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(Span(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: count)))
    }

    package var description: String { "<secret>" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension Secret {
    /// Concatenates the parts.
    package convenience init(joining parts: [Secret]) {
        self.init(count: parts.reduce(0) { $0 + $1.count }) { target in
            var offset = 0
            for part in parts {
                part.withPointer { (target + offset).copyMemory(from: $0, byteCount: part.count) }
                offset += part.count
            }
        }
    }

    /// Copies a range of the bytes.
    package func part(_ range: Range<Int>) -> Secret {
        withExposedBytes { Secret(copying: $0.extracting(range)) }
    }

    /// Copies the digest's bytes and wipes the original.
    package convenience init(taking digest: inout Digest32) {
        self.init(copying: digest.span)
        digest.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) }
    }

    /// The same for a digest of 64 bytes.
    package convenience init(taking digest: inout Digest64) {
        self.init(copying: digest.span)
        digest.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) }
    }
}

extension RandomSource {
    /// `count` random bytes as a secret.
    package func secret(_ count: Int) -> Secret {
        var bytes = bytes(count)
        defer { bytes.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        return Secret(copying: bytes.span)
    }
}

extension Secret {
    /// Passes a pointer to the bytes to `body`, for the duration of the call. If there are none, the pointer
    /// is to a byte that C does not read, because an empty span may have no address.
    func withPointer<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
        withExposedBytes { $0.withPointer(body) }
    }
}

extension Span<UInt8> {
    /// The same for bytes that are not secret.
    func withPointer<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
        withUnsafeBufferPointer { buffer in
            if let start = buffer.baseAddress { return body(start) }
            return withUnsafePointer(to: 0) { body($0) }
        }
    }
}

/// The source of randomness. It is an argument, so that tests can fix it.
package protocol RandomSource: Sendable {
    func bytes(_ count: Int) -> [UInt8]
}

/// The kernel's generator.
package struct SystemRandom: RandomSource {
    package init() {}

    package func bytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        bytes.withUnsafeMutableBytes { if let start = $0.baseAddress { randombytes_buf(start, count) } }
        return bytes
    }
}

/// Compares secrets, and MACs and digests that an attacker may influence. The time depends only on the
/// lengths, which are public.
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
