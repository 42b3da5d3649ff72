/// What one slow hash costs. Kept with each hash, so that the costs of new ones can change.
package struct HashCost: Sendable, Equatable {
    /// KiB.
    package let memory: Int
    package let passes: Int

    /// Nil outside 8 KiB to 64 MiB and 1 to 16 passes: a row that somebody altered must not choose how much memory a
    /// login takes.
    package init?(memory: Int, passes: Int) {
        guard (8...65_536).contains(memory), (1...16).contains(passes) else { return nil }
        self.init(known: memory, passes)
    }

    private init(known memory: Int, _ passes: Int) {
        self.memory = memory
        self.passes = passes
    }

    /// 19 MiB and two passes. Source: OWASP's guidance for Argon2id, its smallest setting by memory that has two passes.
    package static let standard = HashCost(known: 19_456, 2)
}

/// A slow, salted hash of a password: Argon2id 1.3 with one lane. Source: RFC 9106.
package struct PasswordHash: Sendable, Equatable {
    /// libsodium could not get the memory.
    package struct OutOfMemory: Error, Sendable, Equatable {}

    package static let saltCount = Argon2id.saltCount
    package static let hashCount = 32

    package let cost: HashCost
    private let salt: [UInt8]
    private let hash: [UInt8]

    package init(of password: Secret, cost: HashCost, random: some RandomSource = SystemRandom()) throws(OutOfMemory) {
        self.cost = cost
        salt = random.bytes(PasswordHash.saltCount)
        hash = try PasswordHash.compute(password, cost, salt)
    }

    /// Takes as long as making the hash, whatever the verdict.
    package func matches(_ password: Secret) throws(OutOfMemory) -> ConstantTime.Verdict {
        let other = try PasswordHash.compute(password, cost, salt)
        return ConstantTime.equals(hash.span, other.span)
    }

    private static func compute(
        _ password: Secret, _ cost: HashCost, _ salt: [UInt8]
    ) throws(OutOfMemory) -> [UInt8] {
        guard let argon2id = Argon2id(memory: cost.memory, passes: cost.passes, lanes: 1, salt: salt),
            let hash = try? argon2id.hash(password, count: hashCount)
        else { throw OutOfMemory() }
        return hash.withExposedBytes { $0.withUnsafeBufferPointer { Array($0) } }
    }
}

/// `1 ‖ memory in KiB (4, big-endian) ‖ passes (4) ‖ salt (16) ‖ hash (32)`; the first byte names this layout.
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

    /// Nil where the bytes are none that ``encoded`` gives.
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
