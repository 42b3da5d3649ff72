import CountersignWire

extension Cause {
    /// Why a request was refused whose signature holds: there the gate's own reason is the evidence. Nil where the
    /// reason is not the caller's doing.
    static func ofRule(_ refusal: Refusal) -> Cause? {
        switch refusal.code {
        case .badSignature:
            Cause(
                "covers-too-little", "the signature holds, and the gate asks for more: \(refusal.detail)",
                "cover what is asked for, and name the release that the key was made for")
        case .replayed:
            Cause(
                "sent-twice", "the same signed request was received before",
                "make a new nonce for each request, and sign again before sending again")
        case .schemeNotAllowed:
            Cause(
                "scheme-not-allowed", "the signature holds: \(refusal.detail)",
                "sign with a scheme that the app allows, or allow this one: countersign app policy APP --set schemes=…")
        default: nil
        }
    }
}
