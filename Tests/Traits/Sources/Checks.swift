import Countersign
import Glibc

struct Checks {
    struct Wrong: Error { let what: String }

    let folder: String

    /// A client over a vault with a key file reads its state.
    func client() async throws {
        let client = try client(.standard)
        guard case .signedOut = await client.resume() else { throw Wrong(what: "a new client is signed in") }
    }

    /// The platform's vault comes to what this build has, and keeps a text.
    func platform(_ traits: Set<String>) async throws {
        let name = try ItemName(service: "traits", account: "text")
        let place = VaultPlace.platform(folder: "\(folder)/platform") { "correct horse" }
        try await Vault(place).setText("kept", at: name)
        guard try await Vault(place).text(name).get() == "kept" else {
            throw Wrong(what: "a text is gone")
        }
        let backEnds = ["secret-service": "SecretService", "tpm": "TPM"]
        let backEnd = try read("\(folder)/platform/back-end")
        if let trait = backEnds[backEnd], !traits.contains(trait) {
            throw Wrong(what: "\(backEnd) was chosen")
        }
    }

    /// A vault that a build with the trait has put into the keyring.
    func secretService() async throws {
        let place = VaultPlace.platform(folder: try made(of: "secret-service"))
        let name = try ItemName(service: "traits", account: "text")
        try await fails("SecretService") { try await Vault(place).setText("kept", at: name) }
        guard case .failed(let why) = await Vault(place).text(name),
            why.contains(Checks.text("SecretService"))
        else {
            throw Wrong(what: "an item in the Secret Service is read")
        }
    }

    /// A vault that a build with the trait has put under the TPM, and a client whose keys have to be there.
    func hardware() async throws {
        let place = VaultPlace.platform(folder: try made(of: "tpm"))
        let name = try ItemName(service: "traits", account: "text")
        try await fails("TPM") { try await Vault(place).setText("kept", at: name) }
        try await fails("TPM") {
            let client = try client(.hardware)
            try await client.logIn("anna", "correct horse battery staple")
        }
    }

    func presence() async throws {
        let presence = UserPresence.platform { _ in "correct horse" }
        let vault = Vault(.folder("\(folder)/presence"))
        let name = try ItemName(service: "traits", account: "bound")
        try await fails("Presence") {
            _ = try await presence.setBytes([1], at: name, in: vault, reason: "test")
        }
        try await fails("Presence") { _ = try await presence.bytes(name, in: vault, reason: "test") }
        try await presence.remove(name, in: vault)
    }

    private enum Keys { case standard, hardware }

    private func client(_ keys: Keys) throws -> CountersignClient {
        var options = CountersignOptions()
        if keys == .hardware { options.deviceKeyStorage = .hardwareOnly }
        let key = try ReleaseKey(
            id: "r_1a2b3c", secret: "VGhpcnR5LXR3byBieXRlcyBvZiBhIHJlbGVhc2Uga2V5IQ",
            authorityKey: "TWluZSBpcyBhIHB1YmxpYyBrZXkgb2YgMzIgYnl0ZXM", app: "notes")
        return try CountersignClient(
            release: key, baseURL: "https://127.0.0.1:1", vault: .folder("\(folder)/client"), trust: [],
            options: options)
    }

    /// A folder of a vault whose place was chosen earlier.
    private func made(of backEnd: String) throws -> String {
        let path = "\(folder)/\(backEnd)"
        guard mkdir(path, 0o700) == 0, let file = fopen("\(path)/back-end", "w") else {
            throw Wrong(what: "\(path) cannot be made")
        }
        fputs(backEnd, file)
        fclose(file)
        guard chmod("\(path)/back-end", 0o600) == 0 else { throw Wrong(what: "\(path)/back-end: mode") }
        return path
    }

    private func read(_ path: String) throws -> String {
        guard let file = fopen(path, "r") else { throw Wrong(what: "\(path) cannot be read") }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    private static func text(_ trait: String) -> String {
        "this build of the SDK leaves out \(trait); build with `--traits \(trait)`"
    }

    private func fails(_ trait: String, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch {
            guard "\(error)".contains(Checks.text(trait)) else { throw Wrong(what: "\(trait): \(error)") }
            return
        }
        throw Wrong(what: "\(trait) is left out, and nothing fails")
    }
}
