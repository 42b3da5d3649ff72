import CountersignSeal
import CountersignWire

extension Claim {
    /// Whether the string to sign, which lies in `workspace`, has the claim's signature under `key`. The gate, the
    /// explanations and clients that verify answers ask here and nowhere else. It says so much and no more: what follows from
    /// it is theirs, and only the gate makes a proof of it.
    package func compare(with key: SigningKey, _ workspace: borrowing Workspace) -> ConstantTime.Verdict {
        guard fits(key) else { return .different }
        let mac = mac
        if let publicKey = key.publicKey {
            return publicKey.verify(signature(orShort: mac, in: workspace), of: workspace.text.bytes.span)
        }
        let verdict = ConstantTime.equals(key.mac(algorithm, of: workspace.text).span, mac.span)
        key.settle(verdict, algorithm, of: workspace.text)
        return verdict
    }

    /// The same for a device's key, of which nothing is kept ready.
    package func compare(with point: P256Point, _ workspace: borrowing Workspace) -> ConstantTime.Verdict {
        guard namedAlgorithm ?? .ecdsaP256 == .ecdsaP256 else { return .different }
        let mac = mac
        return point.verify(signature(orShort: mac, in: workspace), of: workspace.text.bytes.span)
    }
}
