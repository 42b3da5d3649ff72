/// What a signature lacks of the least that the gate accepts, however good its MAC. Offline verification notes it.
package struct Shortfalls: OptionSet, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package static let method = Shortfalls(rawValue: 1 << 0)
    package static let authority = Shortfalls(rawValue: 1 << 1)
    package static let path = Shortfalls(rawValue: 1 << 2)
    package static let query = Shortfalls(rawValue: 1 << 3)
    package static let release = Shortfalls(rawValue: 1 << 4)
    package static let releaseValue = Shortfalls(rawValue: 1 << 5)
    package static let contentDigest = Shortfalls(rawValue: 1 << 6)
    package static let digestAlgorithm = Shortfalls(rawValue: 1 << 7)
    package static let contentType = Shortfalls(rawValue: 1 << 8)
    package static let idempotencyKey = Shortfalls(rawValue: 1 << 9)
    package static let created = Shortfalls(rawValue: 1 << 10)
    package static let nonce = Shortfalls(rawValue: 1 << 11)
    package static let callingRelease = Shortfalls(rawValue: 1 << 12)

    private static let sentences: [(Shortfalls, String)] = [
        (.method, "the signature does not cover \"@method\""),
        (.authority, "the signature does not cover \"@authority\""),
        (.path, "the signature does not cover \"@path\""),
        (.query, "the signature does not cover \"@query\""),
        (.release, "the signature does not cover \"countersign-release\""),
        (.releaseValue, "countersign-release must be sent once and be the signature's keyid"),
        (.callingRelease, "countersign-release must be sent once and be the key id of the release that calls"),
        (.contentDigest, "there is a body, and the signature does not cover \"content-digest\""),
        (.digestAlgorithm, "content-digest has neither sha-256 nor sha-512"),
        (.contentType, "the signature does not cover \"content-type\", which is sent"),
        (.idempotencyKey, "the signature does not cover \"idempotency-key\", which is sent"),
        (.created, "the signature has no \"created\" parameter"),
        (.nonce, "the signature has no \"nonce\" parameter"),
    ]

    /// One sentence each.
    package var descriptions: [String] { Shortfalls.sentences.filter { contains($0.0) }.map(\.1) }
}
