import CountersignSeal

/// The data by which a client that knows the password recovers its key pair and verifies that the server's
/// key and both names are those of the registration. Source: RFC 9807 §4.1.
struct Envelope: Sendable {
    static let count = 96

    let nonce: Nonce
    let tag: Tag

    init(nonce: Nonce, tag: Tag) {
        self.nonce = nonce
        self.tag = tag
    }

    /// Nil if the length differs.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Envelope.count, let nonce = Nonce(Array(bytes[0..<32])),
            let tag = Tag(Array(bytes[32..<96]))
        else { return nil }
        self.init(nonce: nonce, tag: tag)
    }

    var bytes: [UInt8] { nonce.array + tag.array }
}

/// The keys derived from a randomized password and an envelope's nonce. Source: §4.1.2.
struct EnvelopeKeys: Sendable {
    let authKey: Secret
    let exportKey: Secret
    let client: KeyPair
    private let nonce: Nonce

    init(_ password: RandomizedPassword, nonce: Nonce) throws(SealError) {
        self.nonce = nonce
        authKey = password.expand(nonce: nonce.array, label: "AuthKey", count: HKDFSHA512.keyCount)
        exportKey = password.expand(nonce: nonce.array, label: "ExportKey", count: HKDFSHA512.keyCount)
        client = try KeyPair(
            seed: password.expand(nonce: nonce.array, label: "PrivateKey", count: KeyPair.seedCount))
    }

    /// The tag for this server's key and these names. `serverPublicKey` is passed as bytes: until the tag
    /// is verified it need not be a valid key.
    func tag(serverPublicKey: [UInt8], parties: Parties) -> Secret {
        let server = parties.server.bytes(orKey: serverPublicKey)
        let client = parties.client.bytes(orKey: client.publicKey.bytes)
        var mac = HMACSHA512(key: authKey)
        mac.update(nonce.array.span)
        mac.update(serverPublicKey.span)
        mac.update(lengthPrefix(server.count).span)
        mac.update(server.span)
        mac.update(lengthPrefix(client.count).span)
        mac.update(client.span)
        return mac.finish()
    }
}

/// The OPRF's output combined with its stretched form: 64 bytes. Computing them takes the password and the
/// server's evaluation. Source: RFC 9807 §5.2.3, §6.3.2.3.
struct RandomizedPassword: Sendable {
    let bytes: Secret

    init(
        _ password: Password, blind: Ristretto255.Scalar, evaluated: Ristretto255.Element,
        stretching: KeyStretchingFunction
    ) throws(SealError) {
        let output = try OPRF.finalize(password, blind: blind, evaluated: evaluated)
        bytes = HKDFSHA512.extract(from: [output, try stretching.stretch(output)])
    }

    var maskingKey: Secret { expand(nonce: [], label: "MaskingKey", count: HKDFSHA512.keyCount) }

    func expand(nonce: [UInt8], label: String, count: Int) -> Secret {
        HKDFSHA512.expand(bytes, info: nonce + label.utf8, count: count)
    }
}

/// The key stretching function that the client applies to the OPRF's output, so that each guess is expensive
/// for a thief of the server's secrets. All clients of a deployment use the same one for as long as the
/// records exist. Source: RFC 9807 §7, §10.8.
package struct KeyStretchingFunction: Sendable {
    private enum Function { case argon2id(Argon2id), identity }

    private let function: Function

    /// 19 MiB, two passes, one lane.
    package static let standard = KeyStretchingFunction(function: .argon2id(.standard))

    /// `memory` is in KiB. Nil for parameters that libsodium does not support: `lanes` other than 1, a salt
    /// that is not 16 bytes, less than 8 KiB.
    package static func argon2id(memory: Int, passes: Int, lanes: Int, salt: [UInt8])
        -> KeyStretchingFunction?
    {
        Argon2id(memory: memory, passes: passes, lanes: lanes, salt: salt)
            .map { KeyStretchingFunction(function: .argon2id($0)) }
    }

    /// No stretching, as in the RFC's vectors. A thief of the server's secrets can guess the password of
    /// such a record a million times a second, so only this module and its tests have access.
    static let noneForTheVectorsOfTheStandardOnly = KeyStretchingFunction(function: .identity)

    /// Stretches 64 bytes to 64 bytes.
    func stretch(_ output: Secret) throws(SealError) -> Secret {
        switch function {
        case .argon2id(let function): try function.hash(output, count: output.count)
        case .identity: output
        }
    }
}
