import CountersignSodium

/// Where randomness comes from, as an argument, so that a test can decide it.
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
