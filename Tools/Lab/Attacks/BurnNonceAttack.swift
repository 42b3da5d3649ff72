/// Fills the server's memory of seen requests with forged copies.
struct BurnNonceAttack: Attack {
    let name: AttackName = "burn-nonce"
    let column = Column.replay
    let sentence = """
        Sends a forged copy of the victim's request ahead of it, so that the genuine one would count as seen \
        already.
        """

    func exemption(of row: RowProfile) -> String? {
        switch (row.server, row.scheme) {
        case (.reference, _): "such a server remembers no requests"
        case (.gateway, .apiKey(.authV2)), (.gateway, .apiKey(.authV4)), (.gateway, .token),
            (.gateway, .openRoute):
            "nothing in a request tells it from an equal one"
        default: nil
        }
    }

    func run(on stage: Stage) async throws -> AttackOutcome {
        let (victim, other) = (try await stage.customer(), try stage.newShop())
        do {
            try await victim.transfer(1, to: other)
        } catch {
            throw LabError("\(victim.name) cannot pay without an attack: \(error)")
        }
        for forge in [BurnNonceAttack.replacingPayee, BurnNonceAttack.corruptingSignature] {
            // A new shop for each: some schemes cannot tell two equal calls within one second apart.
            let shop = try stage.newShop()
            let held = try await stage.interceptRequest(to: RawRequest.transferPath) {
                () async throws(VictimError) in
                try await victim.transfer(TamperScenario.intendedAmount, to: shop)
            }
            guard let held else { return stage.appRefusesCertificate }
            let before = try stage.bank.balance(of: shop)
            let forged = forge(held, other)
            guard forged != held else { throw LabError("the forged copy is the genuine request") }
            _ = try await stage.attack("sends a forged copy ahead", request: forged)
            _ = try await stage.attack("lets the victim's own request go on", request: held)
            if try stage.bank.balance(of: shop) == before {
                return .succeeded("after a forged copy the victim's own request was refused")
            }
        }
        return .failed("forged copies are refused and forgotten: the victim's own requests were carried out")
    }

    private static func replacingPayee(in request: RawRequest, with payee: String) -> RawRequest {
        request.paying(payee)
    }

    /// The same nonce, with one digit of the signature changed, wherever the scheme carries it.
    private static func corruptingSignature(of request: RawRequest, payee: String) -> RawRequest {
        var copy = request
        for name in ["sign", "auth_signature"] {
            if let value = request.parameters[name] { copy.parameters[name] = withLastDigitFlipped(value) }
        }
        for name in ["Authorization", "X-Auth-Signature"] {
            if let value = request.fields[name], !value.hasPrefix("Bearer ") {
                copy.fields[name] = withLastDigitFlipped(value)
            }
        }
        if let value = request.fields["Signature"], let colon = value.firstIndex(of: ":") {
            let start = value.index(after: colon)
            copy.fields["Signature"] =
                "\(value[..<start])\(withLastDigitFlipped(String(value[start...].prefix(1))))"
                + "\(value[start...].dropFirst())"
        }
        return copy
    }

    private static func withLastDigitFlipped(_ text: String) -> String {
        String(text.dropLast()) + (text.hasSuffix("0") ? "1" : "0")
    }
}
