import CountersignSodium

extension Secret {
    /// The parts, one after the other.
    package convenience init(joining parts: [Secret]) {
        self.init(count: parts.reduce(0) { $0 + $1.count }) { target in
            var offset = 0
            for part in parts {
                part.withPointer { (target + offset).copyMemory(from: $0, byteCount: part.count) }
                offset += part.count
            }
        }
    }

    /// A copy of some of the bytes.
    package func part(_ range: Range<Int>) -> Secret {
        withExposedBytes { Secret(copying: $0.extracting(range)) }
    }

    /// Takes the digest's bytes, and wipes them where they were.
    package convenience init(taking digest: inout Digest32) {
        self.init(copying: digest.span)
        digest.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) }
    }

    /// The same of a longer one.
    package convenience init(taking digest: inout Digest64) {
        self.init(copying: digest.span)
        digest.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) }
    }
}

extension RandomSource {
    /// `count` bytes that no one is to see.
    package func secret(_ count: Int) -> Secret {
        var bytes = bytes(count)
        defer { bytes.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        return Secret(copying: bytes.span)
    }
}
