// A device key that is available only while the user is present.
import Countersign

/// The device's signing key is bound to the user's presence: a copy of the vault holds no session that can
/// be renewed.
func optionsWithPresence(_ presence: UserPresence) -> CountersignOptions {
    var options = CountersignOptions()
    options.deviceKey = .boundToPresence(presence)
    return options
}

/// An app that goes on only where its keys are in the Secure Enclave or a TPM. Unasked, hardware is used
/// where there is any.
func optionsWithHardware() -> CountersignOptions {
    var options = CountersignOptions()
    options.deviceKeyStorage = .hardwareOnly
    return options
}

/// For a test bench on which many devices live on one machine.
let inSoftware: [CountersignOptions.DeviceKeyStorage] = [.softwareOnly, .hardwareWhereThereIsOne]

/// Nobody is asked at launch; only what needs the key asks for him.
func withoutGate(_ options: CountersignOptions) -> CountersignOptions {
    var options = options
    if options.gate == .atLaunch { options.gate = CountersignOptions.Gate.none }
    return options
}

/// Routes that want the device's own signature, a refresh, another password: within the closure, and not
/// outside of it.
func pay(_ client: CountersignClient, _ payment: APIRequest) async throws -> Int {
    try await client.withPresence("Confirm payment") { client in
        try await client.data(for: payment).1.status
    }
}

/// The gate after launch.
func gate(_ client: CountersignClient) async -> String? {
    switch await client.resume() {
    case .active: return nil
    case .locked: break
    case .signedOut: return "to the login page"
    case .unavailable: return "what is kept cannot be read"
    case .updateRequired: return "to the next version"
    }
    do {
        try await client.unlock("Open your notes")
        return nil
    } catch {
        switch error {
        case .notPresent(.retry): return "try again"
        case .notPresent(.passcodeOrPassword): return "the device's passcode, or the password"
        case .notPresent(.loginPage): return "to the login page"
        default: return error.description
        }
    }
}

/// Where the key is kept with the session, nobody is asked.
let unbound = CountersignOptions.DeviceKey.kept
