/// HKDF with HMAC-SHA512. Source: RFC 5869.
package enum HKDFSHA512 {
    /// Bytes of a pseudorandom key.
    package static let keyCount = HMACSHA512.count

    /// The pseudorandom key that the parts, one after the other, give. Source: §2.2.
    package static func extract(salt: [UInt8] = [], from parts: [Secret]) -> Secret {
        var mac = HMACSHA512(key: salt.span)
        for part in parts { mac.update(part) }
        return mac.finish()
    }

    /// `count` bytes, at most 16,320 (255 blocks), that belong to this key and this `info`. Source: §2.3.
    package static func expand(_ key: Secret, info: [UInt8], count: Int) -> Secret {
        precondition(count <= 255 * HMACSHA512.count, "a length is always one of the code's own constants")
        var blocks: [Secret] = []
        var counter: UInt8 = 0
        while blocks.count * HMACSHA512.count < count {
            counter += 1
            var mac = HMACSHA512(key: key)
            if let last = blocks.last { mac.update(last) }
            mac.update(info.span)
            mac.update([counter].span)
            blocks.append(mac.finish())
        }
        return Secret(joining: blocks).part(0..<count)
    }
}
