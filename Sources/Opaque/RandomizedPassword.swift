import CountersignSeal

/// What the OPRF and the stretching make of a password: 64 bytes that only who knows the password, and asked the server,
/// can have. Source: RFC 9807 §5.2.3, §6.3.2.3.
struct RandomizedPassword: Sendable {
    let bytes: Secret

    init(
        _ password: Password, blind: Ristretto255.Scalar, evaluated: Ristretto255.Element, _ stretching: KeyStretching
    ) throws(CryptographyFault) {
        let output = try OPRF.finalize(password, blind: blind, evaluated: evaluated)
        bytes = HKDFSHA512.extract(from: [output, try stretching.stretch(output)])
    }

    var maskingKey: Secret { expand([], "MaskingKey", count: HKDFSHA512.keyCount) }

    func expand(_ nonce: [UInt8], _ label: String, count: Int) -> Secret {
        HKDFSHA512.expand(bytes, info: nonce + label.utf8, count: count)
    }
}
