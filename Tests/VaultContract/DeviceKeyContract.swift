// What every back end of a device's keys must do. Never shipped.
import CountersignSeal
import CountersignVault

package struct DeviceKeyContract {
    let backEnd: any DeviceKeyBackEnd

    package init(_ backEnd: any DeviceKeyBackEnd) { self.backEnd = backEnd }

    /// Each rule's name with what it found; empty text where it holds.
    package func run() -> [(rule: String, wrong: String)] {
        DeviceKeyContract.rules.map { rule in
            do throws(DeviceKeyError) {
                return (rule.name, try rule.check(backEnd) ?? "")
            } catch {
                return (rule.name, "threw \(error)")
            }
        }
    }

    typealias Rule = (
        name: String, check: @Sendable (any DeviceKeyBackEnd) throws(DeviceKeyError) -> String?
    )

    static let rules: [Rule] = [
        ("a signature holds under the key's own point", signature),
        ("a key opened again is the same", reopening),
        ("both sides agree on a secret", agreement), ("two keys are two", difference),
        ("a point off the curve is refused", badPoint), ("bytes of nobody's are lost keys", foreignBytes),
        ("an altered key does not work", alteration), ("a key that is there is usable", usability),
    ]

    private static let message = Array("a message".utf8)

    private static func signature(_ backEnd: any DeviceKeyBackEnd) throws(DeviceKeyError) -> String? {
        let made = try backEnd.makeKey(for: .signing)
        let key = try backEnd.signingKey(made.wrapped)
        guard made.point.isOnCurve, key.point == made.point else { return "the point is another" }
        for number in 0..<8 {
            let text = message + [UInt8(number)]
            let signature = try key.sign(text)
            guard signature.count == 64 else { return "\(signature.count) bytes" }
            guard made.point.verify(signature.span, of: text.span) == .equal else {
                return "it does not hold"
            }
            guard made.point.verify(signature.span, of: message.span) == .different else {
                return "it holds for all"
            }
        }
        return nil
    }

    private static func reopening(_ backEnd: any DeviceKeyBackEnd) throws(DeviceKeyError) -> String? {
        let made = try backEnd.makeKey(for: .signing)
        let copy = made.wrapped.withExposedBytes { Secret(copying: $0) }
        let signature = try backEnd.signingKey(copy).sign(message)
        return made.point.verify(signature.span, of: message.span) == .equal ? nil : "it signs as another"
    }

    private static func agreement(_ backEnd: any DeviceKeyBackEnd) throws(DeviceKeyError) -> String? {
        let made = try backEnd.makeKey(for: .agreement)
        let key = try backEnd.agreementKey(made.wrapped)
        for _ in 0..<8 {
            guard let peer = try? AgreementKey(), let theirs = try? peer.sharedSecret(with: made.point) else {
                return "no key for the other side"
            }
            let ours = try key.sharedSecret(with: peer.publicPoint)
            guard VaultContract.bytes(ours) == VaultContract.bytes(theirs) else {
                return "the secrets differ"
            }
        }
        return nil
    }

    private static func difference(_ backEnd: any DeviceKeyBackEnd) throws(DeviceKeyError) -> String? {
        let (one, other) = (try backEnd.makeKey(for: .signing), try backEnd.makeKey(for: .signing))
        guard one.point != other.point else { return "they are the same" }
        let signature = try backEnd.signingKey(one.wrapped).sign(message)
        return other.point.verify(signature.span, of: message.span) == .different
            ? nil : "one signs as the other"
    }

    private static func badPoint(_ backEnd: any DeviceKeyBackEnd) throws(DeviceKeyError) -> String? {
        let key = try backEnd.agreementKey(try backEnd.makeKey(for: .agreement).wrapped)
        guard let point = P256Point([4] + [UInt8](repeating: 1, count: 64)) else { return "no point" }
        do {
            _ = try key.sharedSecret(with: point)
            return "it is taken"
        } catch {
            return error == .badPoint ? nil : "threw \(error)"
        }
    }

    private static func foreignBytes(_ backEnd: any DeviceKeyBackEnd) throws(DeviceKeyError) -> String? {
        for bytes in [
            [], [1], [2], [1, 0, 0], Array("nobody's key".utf8), [UInt8](repeating: 1, count: 5_000),
        ] {
            for use in DeviceKeyUse.allCases {
                if let wrong = notLost(backEnd, Secret(copying: bytes.span), use) { return wrong }
            }
        }
        return nil
    }

    /// Each byte that is changed leads to an error or to a key that still is the same one; never to another.
    private static func alteration(_ backEnd: any DeviceKeyBackEnd) throws(DeviceKeyError) -> String? {
        let made = try backEnd.makeKey(for: .signing)
        let bytes = VaultContract.bytes(made.wrapped)
        for index in Swift.stride(from: 0, to: bytes.count, by: max(bytes.count / 12, 1)) {
            var changed = bytes
            changed[index] ^= 0x10
            guard let key = try? backEnd.signingKey(Secret(copying: changed.span)) else { continue }
            guard (try? key.verifyUsable()) != nil, let signature = try? key.sign(message) else { continue }
            guard key.point.verify(signature.span, of: message.span) == .equal else { return "byte \(index)" }
        }
        return nil
    }

    private static func usability(_ backEnd: any DeviceKeyBackEnd) throws(DeviceKeyError) -> String? {
        try backEnd.signingKey(try backEnd.makeKey(for: .signing).wrapped).verifyUsable()
        try backEnd.agreementKey(try backEnd.makeKey(for: .agreement).wrapped).verifyUsable()
        return nil
    }

    /// What is wrong where the bytes open as a key, or as anything but one that is lost for good.
    private static func notLost(
        _ backEnd: any DeviceKeyBackEnd, _ wrapped: Secret, _ use: DeviceKeyUse
    ) -> String? {
        do {
            switch use {
            case .signing: _ = try backEnd.signingKey(wrapped).sign(message)
            case .agreement: try backEnd.agreementKey(wrapped).verifyUsable()
            }
            return "\(wrapped.count) bytes are a key"
        } catch .lost {
            return nil
        } catch {
            return "threw \(error)"
        }
    }
}
