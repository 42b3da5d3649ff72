import CountersignSeal
import CountersignWire

/// What a request says about its own signature, read and well formed, and not yet believed.
///
/// A class, so that the steps of the gate hand it on without copying some 400 bytes each time. Safe to share:
/// the scheme that reads a request writes its claim, and nothing changes it afterwards.
package final class Claim: @unchecked Sendable {
    /// When the signature says it was made.
    package enum Created: Sendable, Equatable {
        /// Whole Unix seconds.
        case unix(Int64)
        /// The device's wall clock, as if it were UTC; the app's policy knows the zone.
        case wallClock(Int64)
        /// The scheme does not sign a time.
        case unsigned
    }

    /// What makes two requests the same one. Scoped by key and scheme.
    package typealias ReplayKey = ShortBytes

    /// How a second copy of the request is told from the first. Source: docs/protocol.md, the table of replay keys.
    package enum Replay: Sendable {
        /// By what the client made for this one request.
        case nonce(ReplayKey)
        /// By the decoded signature: two honest, identical calls within one second cannot be told apart, so an app's
        /// policy says which of them may repeat.
        case signature
        /// Equal calls have equal signatures at any time.
        case impossible
    }

    /// Whether the message itself says which of its signatures counts.
    package enum Choice: Sendable {
        case made
        /// Several could be meant, and this is the first: only a policy's `label` can tell.
        case open
    }

    /// What the string to sign is made of.
    package enum Base: Sendable {
        /// The head, with at most a digest of the body in it.
        case head
        /// The body itself as well, which has not been read: the signature cannot be verified before.
        case awaitedBody
    }

    /// Whose key it is that the key id names.
    package enum Holder: Sendable, Equatable {
        case release
        case session(SessionToken)
        /// It says of itself that it is a session's token, and is none: nobody's.
        case nobody
    }

    package var scheme: SchemeName
    package var keyID: KeyID
    package var holder = Holder.release
    /// The release that calls: the key id itself, or what a session's request says beside its token and covers; nil where
    /// it does not say.
    package var release: KeyID?
    package var algorithm: MACAlgorithm
    package var mac: MAC
    /// A signature that is too long for `mac`, which is then empty: in `Workspace.decoded`.
    var longSignature: Slice?
    /// The algorithm that the message says it was signed with. It decides nothing; it must not contradict the key.
    package var namedAlgorithm: KeyAlgorithm?
    /// message-signatures: the signature's label, of `Request.head`; and whether another may yet be chosen.
    package var label = Slice.empty
    package var choice = Choice.made
    package var created = Created.unsigned
    /// Whole Unix seconds from which on the signer does not want it accepted.
    package var expires: Int64?
    /// Seconds from `created` for which the signer wants it accepted, where it says so: a presigned URL.
    package var lifetime: Int64?
    package var replay = Replay.impossible
    package var coveredFields = FieldSet.everything
    package var body = BodyExpectation.inSignature
    /// What the caller says of itself, for schemes that sign it: in `Workspace.decoded`.
    var platform: Slice?
    var version: Slice?
    /// form-md5: the session that the caller says it has, where it does: in `Workspace.decoded`.
    var token: Slice?
    /// form-md5: the names of the files in a multipart body, which nothing signs, joined by `, `; empty where
    /// there are none.
    package var unsignedParts: [UInt8] = []
    package var base = Base.head
    /// What it lacks of the least that the gate accepts.
    package var shortfalls: Shortfalls = []

    init(scheme: SchemeName, keyID: KeyID, algorithm: MACAlgorithm, mac: MAC) {
        self.scheme = scheme
        self.keyID = keyID
        release = keyID
        self.algorithm = algorithm
        self.mac = mac
    }

    /// A copy that may be changed.
    package init(copying other: Claim) {
        scheme = other.scheme
        keyID = other.keyID
        holder = other.holder
        release = other.release
        algorithm = other.algorithm
        mac = other.mac
        longSignature = other.longSignature
        namedAlgorithm = other.namedAlgorithm
        label = other.label
        choice = other.choice
        created = other.created
        expires = other.expires
        lifetime = other.lifetime
        replay = other.replay
        coveredFields = other.coveredFields
        body = other.body
        platform = other.platform
        version = other.version
        token = other.token
        unsignedParts = other.unsignedParts
        base = other.base
        shortfalls = other.shortfalls
    }
}

extension Claim {
    /// The longest signature there is: RSA with 4096 bits.
    static let longestSignature = 512

    /// Whether `key` is one that this claim's scheme signs with, by the algorithm that the message names, where it names
    /// one.
    package func fits(_ key: SigningKey) -> Bool {
        if let named = namedAlgorithm, named != key.algorithm { return false }
        return algorithm == .ofKey || key.algorithm == .hmacSHA256
    }

    /// The signature, for a key pair's public half to verify: `short`, which is a copy of `mac`, or one that is longer.
    @_lifetime(borrow short, borrow workspace)
    package func signature(orShort short: borrowing MAC, in workspace: borrowing Workspace) -> Span<UInt8> {
        guard let long = longSignature else { return short.span }
        return workspace.decoded.span.extracting(long.range)
    }

    /// What of this claim is not true of a key that was made for `platform`, lower-case, and `version`; nil where
    /// nothing is. Platforms are compared without case; an empty one, or version, is not known and contradicts nothing.
    package func contradiction(
        to platform: String, _ version: String, _ workspace: borrowing Workspace
    ) -> String? {
        if let said = self.platform, !platform.isEmpty {
            let text = workspace.decoded.span.extracting(said.range)
            if !text.matches(platform, ASCII.lowercased) { return "plat: not \(platform), which the key is for" }
        }
        if let said = self.version, !version.isEmpty {
            let text = workspace.decoded.span.extracting(said.range)
            if !text.matches(version, { $0 }) { return "ver: not \(version), which the key is for" }
        }
        return nil
    }
}

extension Claim {
    /// The token among the signed parameters; nil where there is none, and where it is empty, as clients send it before
    /// anybody has signed in.
    package func token(_ workspace: borrowing Workspace) -> [UInt8]? {
        guard let place = token, !place.isEmpty else { return nil }
        return workspace.decoded.span.extracting(place.range).withUnsafeBufferPointer { Array($0) }
    }
}

extension Span<UInt8> {
    /// Whether both are the same once `fold` has been applied to each byte.
    fileprivate func matches(_ text: String, _ fold: (UInt8) -> UInt8) -> Bool {
        let other = text.utf8
        guard count == other.count else { return false }
        var index = 0
        for byte in other {
            guard fold(self[index]) == fold(byte) else { return false }
            index += 1
        }
        return true
    }
}
