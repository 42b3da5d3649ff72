import CountersignMemory
import CountersignSeal

/// The environment of an attack: a bank, its server, the network and an app. One for each row, used by one
/// attack at a time; each attack makes new victims.
package final class Stage: Sendable {
    package let row: RowProfile
    package let network: Network
    package let bank: Bank
    package let server: any StagedServer
    /// The attacker's knowledge of the scheme.
    package let attackKit: any SchemeAttackKit
    /// The key in the app's binary. Only attacks that extract it from there may use it.
    package let appKey: AppKey
    /// The attacker's account at the bank.
    package let thief: String
    /// The words that passwords are chosen from and that guesses are made of.
    package let words: WordList
    /// For files of this row; removed with it.
    package let folder: String
    private let victims: any VictimSource
    private let record = Locked<[AttackStep]>([])

    package init(_ parts: Parts) {
        row = parts.row
        network = parts.network
        bank = parts.bank
        server = parts.server
        attackKit = parts.attackKit
        appKey = parts.appKey
        thief = parts.thief
        words = parts.words
        folder = parts.folder
        victims = parts.victims
    }

    /// The parts of a stage.
    package struct Parts: Sendable {
        package var row: RowProfile
        package var network: Network
        package var bank: Bank
        package var server: any StagedServer
        package var attackKit: any SchemeAttackKit
        package var appKey: AppKey
        package var thief: String
        package var words: WordList
        package var folder: String
        package var victims: any VictimSource
    }

    /// A new customer with the app, not signed in yet, whose account at the bank holds ``Bank/opening``.
    package func newVictim(_ device: DeviceSetup = DeviceSetup()) async throws -> any Victim {
        try await victims.newVictim(device)
    }

    /// Records a step for the report.
    package func note(_ actor: AttackStep.Actor, action did: String, showing shown: String? = nil) {
        record.with { $0.append(AttackStep(actor, action: did, showing: shown)) }
    }

    /// Returns and clears the recorded steps.
    package func takeSteps() -> [AttackStep] {
        record.with { steps in
            defer { steps = [] }
            return steps
        }
    }

    /// Sends a request to the server's public address on the attacker's own connection, and records request
    /// and response.
    package func attack(_ did: String, request: RawRequest) async throws -> RawResponse {
        note(.attacker, action: did, showing: request.shown)
        let response = try await network.send(request)
        note(.server, action: "answers", showing: response.shown)
        return response
    }
}

/// Makes victims for a row.
package protocol VictimSource: Sendable {
    func newVictim(_ device: DeviceSetup) async throws -> any Victim
}

/// How a victim's device differs from the usual one.
package struct DeviceSetup: Sendable {
    /// Seconds by which the device's clock is behind.
    package var behind: Int64 = 0
    /// The origin that the app calls instead of the bank's, `http://evil.test:12345`; ``host`` is the name in
    /// it.
    package var origin: String?
    package var host: String?
    /// The account name and password to sign in with; nil for a new customer of the bank.
    package var claim: Claim?

    package init() {}

    /// A usual device on which the app signs in with this name and password.
    package init(claiming name: String, typing password: String) {
        claim = Claim(name: name, password: password)
    }

    /// An account name and the password typed for it.
    package struct Claim: Sendable {
        package var name: String
        package var password: String
    }
}

/// The key in the binary of every copy of the app, from which it can be extracted.
package struct AppKey: Sendable {
    /// `app_id`, `auth_key`, a release key id… empty where requests are not signed.
    package var id: String
    /// The secret that signs: the bytes of a release key, not their Base64 text.
    package var secret: Secret
    /// The ladder's salt or key; empty where its rung has none.
    package var ladder: String

    package init(id: String, secret: Secret, ladder: String) {
        self.id = id
        self.secret = secret
        self.ladder = ladder
    }
}

/// The constants of every run. Keys, certificates and passwords are random.
package enum BankApp {
    /// The host that apps call.
    package static let host = "bank.test"
    /// The app, as the gateway knows it.
    package static let name = "bank"
    /// Its version.
    package static let version = "2.0"
    package static let platform = "ios"
}
