import CountersignSodium

/// Argon2id, version 1.3, with a fixed salt: a function that costs memory and time, to stretch what a password gave.
/// Source: RFC 9106.
package struct Argon2id: Sendable, Equatable {
    package static let saltCount = Int(crypto_pwhash_SALTBYTES)

    /// KiB.
    package let memory: Int
    package let passes: Int
    private let salt: [UInt8]

    /// Nil where libsodium cannot do it: it has one lane, a salt of 16 bytes, and 8 KiB at least.
    package init?(memory: Int, passes: Int, lanes: Int, salt: [UInt8]) {
        let most = Int(clamping: crypto_pwhash_memlimit_max()) / 1024
        guard lanes == 1, salt.count == Argon2id.saltCount, (8...most).contains(memory),
            (1...Int(UInt32.max)).contains(passes)
        else { return nil }
        self.memory = memory
        self.passes = passes
        self.salt = salt
    }

    /// 19 MiB, two passes, one lane, no salt: what OWASP's guidance asks of Argon2id at least, and the setting that other
    /// libraries for OPAQUE share. The salt may be zero because the input is an OPRF's output, which no table can hold.
    package static let standard = Argon2id(
        known: 19_456, passes: 2, salt: [UInt8](repeating: 0, count: saltCount))

    private init(known memory: Int, passes: Int, salt: [UInt8]) {
        self.memory = memory
        self.passes = passes
        self.salt = salt
    }

    /// `count` bytes, 16 at least. Fails where the memory cannot be had.
    package func hash(_ input: Secret, count: Int) throws(CryptographyFault) -> Secret {
        // Chooses the implementation for this processor: without it, the portable one would do it in twice the time.
        guard sodium_init() >= 0 else { throw CryptographyFault.unready }
        return try Secret(count: count) { (target: UnsafeMutableRawPointer) throws(CryptographyFault) in
            let status = input.withPointer { start in
                start.withMemoryRebound(to: CChar.self, capacity: input.count) { start in
                    crypto_pwhash(
                        target, UInt64(count), start, UInt64(input.count), salt, UInt64(passes), memory * 1024,
                        crypto_pwhash_ALG_ARGON2ID13)
                }
            }
            guard status == 0 else { throw CryptographyFault.outOfMemory }
        }
    }
}
