import CountersignSeal
import CountersignWire

/// What a request states about its own signature: parsed and well formed, but not verified.
///
/// A class, so that the steps of the gate pass it on without copying some 400 bytes each time. Safe to
/// share: the scheme that reads a request writes its claim, and nothing changes it afterwards, until its
/// last owner gives it back with ``Workspace/spareClaim``.
package final class Claim: @unchecked Sendable {
    /// The creation time that the signature states.
    package enum CreationTime: Sendable, Equatable {
        /// Whole Unix seconds.
        case unix(Int64)
        /// The device's wall clock, as if it were UTC; the app's policy knows the zone.
        case wallClock(Int64)
        /// The scheme does not sign a time.
        case unsigned
    }

    /// The replay key: two requests with equal values are the same request. Scoped by key and scheme.
    package typealias ReplayKey = ShortBytes

    /// How a replay is recognised. Source: docs/protocol.md, the table of replay keys.
    package enum Replay: Sendable {
        /// By a value that the client generated for this request.
        case nonce(ReplayKey)
        /// By the decoded signature: two honest, identical calls within one second cannot be told apart, so
        /// an app's policy says which of them may repeat.
        case signature
        /// Equal calls have equal signatures at any time.
        case impossible
    }

    /// Whether the message itself says which of its signatures counts.
    package enum SignatureSelection: Sendable {
        case definite
        /// Several could be meant, and this is the first: only a policy's `label` can tell.
        case ambiguous
    }

    /// What the string to sign is made of.
    package enum InputSource: Sendable {
        /// The head, with at most a digest of the body in it.
        case head
        /// The body as well, which has not been read yet: the signature cannot be verified before.
        case awaitedBody
    }

    /// The owner of the key that the key id names.
    package enum Holder: Sendable, Equatable {
        case release
        case session(SessionToken)
        /// The key id has the form of a session token but is not a valid one, so it names no key.
        case unknown
    }

    package var scheme: SchemeName
    package var keyID: KeyID
    package var holder = Holder.release
    /// The calling release: the key id itself, or the release that a session's request names in a covered
    /// field; nil if it names none.
    package var release: KeyID?
    package var algorithm: MACAlgorithm
    package var mac: MAC
    /// A signature that is too long for `mac`, which is then empty; it lies in `Workspace.decoded`.
    var longSignature: ByteRange?
    /// The algorithm that the message names. It selects nothing, but it must not contradict the key.
    package var namedAlgorithm: KeyAlgorithm?
    /// The label of this signature in the message, of `Request.head`, for schemes that allow several; and
    /// whether another may yet be chosen.
    package var label = ByteRange.empty
    package var selection = SignatureSelection.definite
    package var created = CreationTime.unsigned
    /// The expiry time that the signer states, in whole Unix seconds.
    package var expires: Int64?
    /// The lifetime in seconds from `created` that the signer states.
    package var lifetime: Int64?
    package var replay = Replay.impossible
    package var coveredFields = FieldSet.everything
    package var body = BodyExpectation.inSignature
    /// What the caller says of itself, for schemes that sign it: in `Workspace.decoded`.
    var platform: ByteRange?
    var version: ByteRange?
    /// The session that the request states among its signed parameters, if any: in `Workspace.decoded`.
    var token: ByteRange?
    /// The names of the parts of a multipart body that are not signed, joined by `, `; empty if there are
    /// none.
    package var unsignedParts: [UInt8] = []
    package var inputSource = InputSource.head
    /// The gate's minimum requirements that the signature does not meet.
    package var unmetRequirements: UnmetRequirements = []

    init(scheme: SchemeName, keyID: KeyID, algorithm: MACAlgorithm, mac: MAC) {
        self.scheme = scheme
        self.keyID = keyID
        release = keyID
        self.algorithm = algorithm
        self.mac = mac
    }

    /// Makes it what a new one is.
    fileprivate func begin(_ scheme: SchemeName, keyID: KeyID, algorithm: MACAlgorithm, mac: MAC) {
        self.scheme = scheme
        self.keyID = keyID
        holder = .release
        release = keyID
        self.algorithm = algorithm
        self.mac = mac
        longSignature = nil
        namedAlgorithm = nil
        label = ByteRange.empty
        selection = .definite
        created = .unsigned
        expires = nil
        lifetime = nil
        replay = .impossible
        coveredFields = .everything
        body = .inSignature
        platform = nil
        version = nil
        token = nil
        if !unsignedParts.isEmpty { unsignedParts = [] }
        inputSource = .head
        unmetRequirements = []
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
        selection = other.selection
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
        inputSource = other.inputSource
        unmetRequirements = other.unmetRequirements
    }
}

extension Claim {
    /// A new claim, or the spare one made new.
    static func make(
        _ scheme: SchemeName, keyID: KeyID, algorithm: MACAlgorithm, mac: MAC, reusing spare: Claim?
    ) -> Claim {
        guard let spare else {
            return Claim(scheme: scheme, keyID: keyID, algorithm: algorithm, mac: mac)
        }
        spare.begin(scheme, keyID: keyID, algorithm: algorithm, mac: mac)
        return spare
    }
}

extension Claim {
    /// Whether later steps read the workspace by this claim.
    package var refersToWorkspace: Bool { platform != nil || version != nil || token != nil }

    /// The longest supported signature: RSA with 4096 bits.
    static let longestSignature = 512

    /// Whether this claim's scheme signs with keys of this kind, and with the algorithm that the message
    /// names, if it names one.
    package func fits(_ key: SigningKey) -> Bool {
        if let named = namedAlgorithm, named != key.algorithm { return false }
        return algorithm == .ofKey || key.algorithm == .hmacSHA256
    }

    /// The signature, for a key pair's public half to verify: `short`, which is a copy of `mac`, or one that
    /// is longer.
    @_lifetime(borrow short, borrow workspace)
    package func signature(orShort short: borrowing MAC, in workspace: borrowing Workspace) -> Span<UInt8> {
        guard let long = longSignature else { return short.span }
        return workspace.decoded.span.extracting(long.range)
    }

    /// The statement of this claim that contradicts a key made for `platform`, in lower case, and `version`;
    /// nil if none does. Platforms are compared without case; an empty platform or version is unknown and
    /// contradicts nothing.
    package func contradiction(
        to platform: String, version: String, workspace: borrowing Workspace
    ) -> String? {
        if let said = self.platform, !platform.isEmpty {
            let text = workspace.decoded.span.extracting(said.range)
            if !text.matches(platform, folding: ASCII.lowercased) {
                return "plat: not \(platform), which the key is for"
            }
        }
        if let said = self.version, !version.isEmpty {
            let text = workspace.decoded.span.extracting(said.range)
            if !text.matches(version, folding: { $0 }) { return "ver: not \(version), which the key is for" }
        }
        return nil
    }
}

extension Claim {
    /// The token among the signed parameters; nil if there is none or if it is empty, as clients send it
    /// before sign-in.
    package func token(in workspace: borrowing Workspace) -> [UInt8]? {
        guard let place = token, !place.isEmpty else { return nil }
        return workspace.decoded.span.extracting(place.range).withUnsafeBufferPointer { Array($0) }
    }
}

extension Span<UInt8> {
    /// Whether both are equal after `fold` is applied to each byte.
    fileprivate func matches(_ text: String, folding fold: (UInt8) -> UInt8) -> Bool {
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

extension Claim {
    /// Whether the signature of the string to sign in `workspace` verifies under `key`. The gate, the
    /// explanations and clients that verify responses all use this function. The result is only a
    /// comparison; only the gate turns it into a proof.
    package func compare(with key: SigningKey, workspace: borrowing Workspace) -> ConstantTime.Verdict {
        guard fits(key) else { return .different }
        let mac = mac
        if let publicKey = key.publicKey {
            return publicKey.verify(signature(orShort: mac, in: workspace), of: workspace.text.bytes.span)
        }
        let verdict = ConstantTime.equals(key.mac(algorithm, of: workspace.text).span, mac.span)
        key.recordVerdict(verdict, algorithm: algorithm, of: workspace.text)
        return verdict
    }

    /// The same for a device's key, which is not cached in prepared form.
    package func compare(with point: P256Point, workspace: borrowing Workspace) -> ConstantTime.Verdict {
        guard namedAlgorithm ?? .ecdsaP256 == .ecdsaP256 else { return .different }
        let mac = mac
        return point.verify(signature(orShort: mac, in: workspace), of: workspace.text.bytes.span)
    }
}

/// Which of a request's fields, by index into `Request.fields`, a signature covers.
package enum FieldSet: Sendable, Equatable {
    /// The scheme signs no fields, so all are forwarded: legacy schemes.
    case everything
    case only(FieldMask)

    /// As many fields as a mask can name.
    package static let limit = FieldMask.limit

    package func contains(_ index: Int) -> Bool {
        switch self {
        case .everything: true
        case .only(let mask): mask.contains(index)
        }
    }

    package var mask: FieldMask {
        switch self {
        case .everything: .all
        case .only(let mask): mask
        }
    }
}
