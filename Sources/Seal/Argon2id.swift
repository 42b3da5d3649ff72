import CountersignSodium

/// Argon2id, version 1.3, with a fixed salt: stretches a value derived from a password at a cost in memory
/// and time. Source: RFC 9106.
package struct Argon2id: Sendable, Equatable {
    package static let saltCount = Int(crypto_pwhash_SALTBYTES)

    /// In KiB.
    package let memory: Int
    package let passes: Int
    private let salt: [UInt8]

    /// Nil for parameters that libsodium does not support: it has one lane, a salt of 16 bytes, and at least
    /// 8 KiB.
    package init?(memory: Int, passes: Int, lanes: Int, salt: [UInt8]) {
        let most = Int(clamping: crypto_pwhash_memlimit_max()) / 1024
        guard lanes == 1, salt.count == Argon2id.saltCount, (8...most).contains(memory),
            (1...Int(UInt32.max)).contains(passes)
        else { return nil }
        self.memory = memory
        self.passes = passes
        self.salt = salt
    }

    /// 19 MiB, two passes, one lane, no salt: the minimum of OWASP's guidance for Argon2id, and the setting
    /// that other OPAQUE libraries use. The salt may be zero because the input is the output of an OPRF, for
    /// which no table can be precomputed.
    package static let standard = Argon2id(
        known: 19_456, passes: 2, salt: [UInt8](repeating: 0, count: saltCount))

    private init(known memory: Int, passes: Int, salt: [UInt8]) {
        self.memory = memory
        self.passes = passes
        self.salt = salt
    }

    /// `count` bytes, at least 16. Throws if the memory is not available.
    package func hash(_ input: Secret, count: Int) throws(SealError) -> Secret {
        // Selects the implementation for this processor: the portable one takes twice as long.
        guard sodium_init() >= 0 else { throw SealError.unready }
        return try Secret(count: count) { (target: UnsafeMutableRawPointer) throws(SealError) in
            let status = input.withPointer { start in
                start.withMemoryRebound(to: CChar.self, capacity: input.count) { start in
                    crypto_pwhash(
                        target, UInt64(count), start, UInt64(input.count), salt, UInt64(passes),
                        memory * 1024,
                        crypto_pwhash_ALG_ARGON2ID13)
                }
            }
            guard status == 0 else { throw SealError.outOfMemory }
        }
    }
}

/// The cost of one slow hash. It is stored with each hash, so that the cost of new hashes can change.
package struct HashCost: Sendable, Equatable {
    /// In KiB.
    package let memory: Int
    package let passes: Int

    /// Nil outside 8 KiB to 64 MiB and 1 to 16 passes: an altered row must not decide how much memory a login
    /// takes.
    package init?(memory: Int, passes: Int) {
        guard (8...65_536).contains(memory), (1...16).contains(passes) else { return nil }
        self.init(known: memory, passes: passes)
    }

    private init(known memory: Int, passes: Int) {
        self.memory = memory
        self.passes = passes
    }

    /// 19 MiB and two passes. Source: OWASP's guidance for Argon2id, the setting with two passes.
    package static let standard = HashCost(known: 19_456, passes: 2)
}

/// A slow, salted hash of a password: Argon2id 1.3 with one lane. Source: RFC 9106.
package struct PasswordHash: Sendable, Equatable {
    package static let saltCount = Argon2id.saltCount
    package static let hashCount = 32

    package let cost: HashCost
    private let salt: [UInt8]
    private let hash: [UInt8]

    package init(of password: Secret, cost: HashCost, random: some RandomSource = SystemRandom())
        throws(SealError)
    {
        self.cost = cost
        salt = random.bytes(PasswordHash.saltCount)
        hash = try PasswordHash.compute(password, cost: cost, salt: salt)
    }

    /// Verifies the password. It takes as long as making the hash, whatever the result.
    package func matches(_ password: Secret) throws(SealError) -> ConstantTime.Verdict {
        let other = try PasswordHash.compute(password, cost: cost, salt: salt)
        return ConstantTime.equals(hash.span, other.span)
    }

    private static func compute(
        _ password: Secret, cost: HashCost, salt: [UInt8]
    ) throws(SealError) -> [UInt8] {
        guard let argon2id = Argon2id(memory: cost.memory, passes: cost.passes, lanes: 1, salt: salt) else {
            throw .outOfMemory
        }
        let hash = try argon2id.hash(password, count: hashCount)
        return hash.withExposedBytes { $0.withUnsafeBufferPointer { Array($0) } }
    }
}

/// `1 ‖ memory in KiB (4, big-endian) ‖ passes (4) ‖ salt (16) ‖ hash (32)`; the first byte names this
/// layout.
extension PasswordHash {
    private static let layout: UInt8 = 1
    private static let count = 1 + 4 + 4 + saltCount + hashCount

    package var encoded: Secret {
        var bytes: [UInt8] = [PasswordHash.layout]
        for number in [cost.memory, cost.passes] {
            for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
        }
        return Secret(copying: (bytes + salt + hash).span)
    }

    /// Nil if the bytes are not a valid ``encoded`` form.
    package init?(encoded: Secret) {
        let bytes = encoded.withExposedBytes { $0.withUnsafeBufferPointer { Array($0) } }
        guard bytes.count == PasswordHash.count, bytes[0] == PasswordHash.layout else { return nil }
        func number(_ range: Range<Int>) -> Int { bytes[range].reduce(0) { $0 << 8 | Int($1) } }
        guard let cost = HashCost(memory: number(1..<5), passes: number(5..<9)) else { return nil }
        self.cost = cost
        salt = Array(bytes[9..<9 + PasswordHash.saltCount])
        hash = Array(bytes[(9 + PasswordHash.saltCount)...])
    }
}
