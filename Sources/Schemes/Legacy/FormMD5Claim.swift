import CountersignWire

/// Reads form-md5's base parameters, each by its own rule.
enum FormMD5Claim {
    static func read(_ workspace: inout Workspace) throws(Refusal) -> Claim {
        let spare = workspace.spareClaim.take()
        var base = Base()
        for parameter in workspace.parameters { base.record(parameter, text: workspace.decoded.span) }
        let text = workspace.decoded.span

        if base.privateKey != nil {
            throw Refusal(.malformed, detail: "private_key was sent: it is a secret")
        }
        guard let sign = base.sign else { throw Refusal(.unsigned, detail: "form parameters without sign") }
        guard let mac = Hex.decodeShort(text.extracting(sign.range)), mac.count == 16 else {
            throw Refusal(.badSignature, detail: "sign: expected 32 lower-case hexadecimal digits")
        }
        guard let appID = base.appID, let keyID = KeyID(text.extracting(appID.range)) else {
            throw Refusal(.unknownKey, detail: "app_id: expected 1 to 64 visible characters")
        }
        guard let rand = base.rand, let replayKey = replayKey(text.extracting(rand.range)) else {
            throw Refusal(.malformed, detail: "rand: expected 8 to 64 letters and digits")
        }
        guard let timestamp = base.timestamp, let time = CivilTime(text.extracting(timestamp.range)) else {
            throw Refusal(.malformed, detail: "timestamp: expected yyyy-MM-dd-HH:mm:ss")
        }
        guard let platform = base.plat, !platform.isEmpty else {
            throw Refusal(.malformed, detail: "plat: expected a platform")
        }
        guard let version = base.ver, !version.isEmpty else {
            throw Refusal(.malformed, detail: "ver: expected a version")
        }
        let claim = Claim.make(
            .formMD5, keyID: keyID, algorithm: .md5OverSecret, mac: mac, reusing: spare)
        claim.created = .wallClock(time.seconds)
        claim.replay = .nonce(replayKey)
        claim.platform = platform
        claim.version = version
        claim.token = base.token
        return claim
    }

    private static func replayKey(_ rand: borrowing Span<UInt8>) -> Claim.ReplayKey? {
        guard rand.count >= 8, rand.count <= 64 else { return nil }
        for index in 0..<rand.count where !ASCII.isLetter(rand[index]) && !ASCII.isDigit(rand[index]) {
            return nil
        }
        return Claim.ReplayKey(rand)
    }

    /// The values of the parameters that every call has, and of those that calls of a session have.
    private struct Base {
        var appID: ByteRange?
        var plat: ByteRange?
        var ver: ByteRange?
        var rand: ByteRange?
        var timestamp: ByteRange?
        var sign: ByteRange?
        var privateKey: ByteRange?
        var token: ByteRange?

        mutating func record(_ parameter: FormParameter, text: borrowing Span<UInt8>) {
            let name = text.extracting(parameter.name.range)
            switch name.count {
            case 3: if name.matches("ver") { ver = parameter.value }
            case 4:
                if name.matches("plat") { plat = parameter.value }
                if name.matches("rand") { rand = parameter.value }
                if name.matches("sign") { sign = parameter.value }
            case 5: if name.matches("token") { token = parameter.value }
            case 6: if name.matches("app_id") { appID = parameter.value }
            case 9: if name.matches("timestamp") { timestamp = parameter.value }
            case 11: if name.matches("private_key") { privateKey = parameter.value }
            default: break
            }
        }
    }
}
