import Countersign
import CountersignWire
import Synchronization

/// An app of the field's: our client of older schemes beneath, and on top of it what such apps do. It remembers the password where the
/// next developer finds it, too: in a file of preferences. Source: docs/protocol.md, what devices keep.
final class LegacyVictim: Victim {
    /// How a transfer is written.
    enum Writing: Sendable { case form, json }

    let name: String
    let password: String?
    let folder: String
    private let client: LegacyClient
    private let writing: Writing
    private let caller: APIRequest.Caller
    private let remembered: [UInt8]
    /// Its version, where it says that in a field of its own; nil where it does not.
    private let version: String?
    private let lastOrder = Mutex<APIRequest?>(nil)

    /// `login` is nil where the app signs with a key of its own, and names the user in a parameter.
    init(
        _ name: String, _ password: String?, _ scheme: LegacyScheme, _ login: LegacyLogin?, writing: Writing,
        remembering remembered: String?, stating version: String? = nil, on device: Device
    ) throws(StageFault) {
        self.name = name
        self.password = password
        self.writing = writing
        self.version = version
        folder = device.folder
        caller = login == nil ? .app : .account
        var options = LegacyOptions()
        options.bearerSecrets = device.isPlain ? .inTheClearToWhoeverListens : .toAnyCertificateThatVerifies
        options.encryption = device.isPlain ? .noneSoThatAnybodyReadsAndChangesEverything : .required
        options.carriage = .standard(device.transport)
        options.clock = device.clock
        let preferences: JSONValue = [
            "userNameKey": .string(name), "isSavePwdKey": true, "userPwdKey": .string(remembered ?? ""),
        ]
        self.remembered = Array(preferences.text.utf8)
        do {
            client = try LegacyClient(
                scheme: scheme, baseURL: device.baseURL, login: login, vault: .folder("\(device.folder)/vault"),
                trust: device.trust, options: options)
        } catch {
            throw StageFault("the victim's app: \(error)")
        }
    }

    func signIn() async throws(VictimProblem) {
        guard let password else { return }
        do {
            try await client.logIn(name, password)
        } catch {
            throw VictimProblem(error)
        }
        try? Files.write(remembered, to: "\(folder)/preferences.json")
    }

    func transfer(_ amount: Int, to name: String) async throws(VictimProblem) {
        let order = order(amount, name)
        lastOrder.withLock { $0 = order }
        try await tryAgain()
    }

    /// Nothing in what is sent tells the same wish from another.
    func tryAgain() async throws(VictimProblem) {
        guard let order = lastOrder.withLock({ $0 }) else { return }
        let answer = try await ask(order)
        guard answer.moved != nil else { throw VictimProblem(answer) }
    }

    func balance() async throws(VictimProblem) -> Int {
        var request = APIRequest(caller == .app ? "/balance?user=\(self.name)" : "/balance")
        request.caller = caller
        let answer = try await ask(request)
        guard let balance = answer.balance else { throw VictimProblem(answer) }
        return balance
    }

    /// Older clients renew when they are told that the token ran out, and not before.
    func renew() async throws(VictimProblem) { throw .notOfThisScheme }

    private func order(_ amount: Int, _ payee: String) -> APIRequest {
        let user: [(String, JSONValue)] = caller == .app ? [("user", .string(name))] : []
        let members = user + [("to", .string(payee)), ("amount", .integer(Int64(amount)))]
        let (type, body): (String, String) =
            switch writing {
            case .json: ("application/json", JSONValue.object(members).text)
            case .form:
                (
                    "application/x-www-form-urlencoded",
                    RawForm(
                        (caller == .app ? [.init("user", name)] : []) + [
                            .init("to", payee), .init("amount", "\(amount)"),
                        ]
                    )
                    .text
                )
            }
        var request = APIRequest(
            .post, "/transfer",
            fields: [HeaderField("Content-Type", type)] + (version.map { [HeaderField("X-App-Version", $0)] } ?? []),
            body: .bytes(Array(body.utf8)))
        request.caller = caller
        return request
    }

    private func ask(_ request: APIRequest) async throws(VictimProblem) -> BankAnswer {
        do {
            return try await client.value(for: request, as: BankAnswer.self)
        } catch {
            throw VictimProblem(error)
        }
    }
}
