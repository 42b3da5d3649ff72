import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Where a device stands among a hundred when a release leaves by percentage: always in the same place for one release,
/// so that who was sent away is not let in again, and in another for the next, so that it is not always the same who go
/// first.
enum RolloutPlace {
    /// 0 to 99. A session has its own place; of a caller without one the network is all that is known.
    static func of(_ release: ReleaseKey, in session: Session?, from network: () -> [UInt8]) -> Int {
        let name = session?.id.description ?? Hex.encode(network().span)
        return place(of: name, under: release.id)
    }

    private static func place(of name: String, under release: KeyID) -> Int {
        // A key id is visible ASCII, so the space ends it.
        let text = Array("countersign/1 rollout \(release) \(name)".utf8)
        let digest = SHA256.digest(text.span)
        var number: UInt64 = 0
        for index in 0..<8 { number = number << 8 | UInt64(digest[index]) }
        return Int(number % 100)
    }
}
