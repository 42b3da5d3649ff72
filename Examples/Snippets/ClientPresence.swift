// A device key that is available only while the user is present.
import Countersign

/// Binds the device's signing key to the user's presence: with a copy of the vault alone, the session cannot
/// be renewed.
func optionsWithPresence(_ presence: UserPresence) -> CountersignOptions {
    var options = CountersignOptions()
    options.deviceKey = .boundToPresence(presence)
    return options
}

/// Requires keys in the Secure Enclave. By default the client uses it if the device has one.
func optionsWithHardware() -> CountersignOptions {
    var options = CountersignOptions()
    options.deviceKeyStorage = .hardwareOnly
    return options
}

/// For a test bench that simulates many devices on one machine.
let inSoftware: [CountersignOptions.DeviceKeyStorage] = [.softwareOnly, .hardwareWhereThereIsOne]

/// Does not ask the user at launch; only operations that need the key require presence.
func withoutGate(_ options: CountersignOptions) -> CountersignOptions {
    var options = options
    if options.gate == .atLaunch { options.gate = CountersignOptions.Gate.none }
    return options
}

/// Sends a request that needs the device's signature. The key is available in the closure only, also for a
/// refresh and for a change of password.
func pay(_ client: CountersignClient, _ payment: APIRequest) async throws -> Int {
    try await client.withPresence("Confirm payment") { client in
        try await client.data(for: payment).1.status
    }
}

/// Opens the gate after launch.
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

/// Stores the key without binding it: its use does not require presence.
let unbound = CountersignOptions.DeviceKey.kept
