import Synchronization

/// Everything that an attack happens on: a bank, its server, the network to it, an app. One for each row, used by one attack at a time;
/// each attack has victims of its own.
package final class Stage: Sendable {
    package let row: RowProfile
    package let network: Network
    package let bank: Bank
    package let server: any StagedServer
    /// What the attacker knows of the scheme.
    package let craft: any Craft
    /// What lies in the app's binary. For attacks that take it from there, and no others.
    package let appKey: AppKey
    /// Where the attacker has money sent.
    package let thief: String
    /// What people choose their passwords from, and what guessing goes through.
    package let words: WordList
    /// For files of this row; removed with it.
    package let folder: String
    /// What the attacker listens and stands in the middle with.
    package let tools: LabTools
    private let casting: any Casting
    private let record = Mutex<[Step]>([])

    package init(_ parts: Parts) {
        row = parts.row
        network = parts.network
        bank = parts.bank
        server = parts.server
        craft = parts.craft
        appKey = parts.appKey
        thief = parts.thief
        words = parts.words
        folder = parts.folder
        tools = parts.tools
        casting = parts.casting
    }

    /// What a stage is made of.
    package struct Parts: Sendable {
        package var row: RowProfile
        package var network: Network
        package var bank: Bank
        package var server: any StagedServer
        package var craft: any Craft
        package var appKey: AppKey
        package var thief: String
        package var words: WordList
        package var folder: String
        package var casting: any Casting
        package var tools = LabTools()
    }

    /// Somebody new, with an account at the bank with ``Bank/opening`` on it, and the app, not signed in yet.
    package func newVictim(_ device: DeviceSetup = DeviceSetup()) async throws -> any Victim {
        try await casting.newVictim(device)
    }

    /// Keeps what happened, for the report.
    package func note(_ actor: Step.Actor, _ did: String, showing shown: String? = nil) {
        record.withLock { $0.append(Step(actor, did, showing: shown)) }
    }

    /// What was noted since the last call.
    package func takeSteps() -> [Step] {
        record.withLock { steps in
            defer { steps = [] }
            return steps
        }
    }

    /// Sends a request to the server's public address, on a connection of the attacker's own, and notes both.
    package func attack(_ did: String, _ request: RawRequest) async throws -> RawResponse {
        note(.attacker, did, showing: request.shown)
        let response = try await network.send(request)
        note(.server, "answers", showing: response.shown)
        return response
    }
}

/// Makes victims for a row.
package protocol Casting: Sendable {
    func newVictim(_ device: DeviceSetup) async throws -> any Victim
}

/// What is out of the ordinary about a victim's device.
package struct DeviceSetup: Sendable {
    /// By how many seconds its clock is behind: what it signs is old when it is new.
    package var behind: Int64 = 0
    /// Where its app was led, `http://evil.test:12345`, in place of the bank; with the name in it.
    package var origin: String?
    package var host: String?
    /// As whom somebody signs in here, and what he types, in place of a new customer of the bank's.
    package var claim: Claim?

    package init() {}

    /// The same, for somebody who says that he is this one.
    package init(claiming name: String, typing password: String) { claim = Claim(name: name, password: password) }

    /// Who somebody says that he is.
    package struct Claim: Sendable {
        package var name: String
        package var password: String
    }
}
