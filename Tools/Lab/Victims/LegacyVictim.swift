import Countersign
import CountersignMemory
import CountersignWire

/// A legacy app: Countersign's client of older schemes, with the behaviour of such apps. It stores the
/// password in a plain preferences file. Source: docs/protocol.md, what devices keep.
final class LegacyVictim: Victim {
    /// How a transfer is written.
    enum BodyFormat: Sendable { case form, json }

    let name: String
    let password: String?
    let folder: String
    private let client: LegacyClient
    private let bodyFormat: BodyFormat
    private let caller: APIRequest.Caller
    private let remembered: [UInt8]
    /// The app's version, if it sends a field for it; else nil.
    private let version: String?
    private let lastOrder = Locked<APIRequest?>(nil)

    /// `login` is nil if the app signs with its own key and names the user in a parameter.
    init(
        name: String, password: String?, scheme: LegacyScheme, login: LegacyLogin?, bodyFormat: BodyFormat,
        remembering remembered: String?, stating version: String? = nil, on device: VictimDevice
    ) throws(LabError) {
        self.name = name
        self.password = password
        self.bodyFormat = bodyFormat
        self.version = version
        folder = device.folder
        caller = login == nil ? .app : .account
        var options = LegacyOptions()
        options.bearerSecrets = device.isPlain ? .inTheClearToWhoeverListens : .toAnyCertificateThatVerifies
        options.encryption = device.isPlain ? .noneSoThatAnybodyReadsAndChangesEverything : .required
        options.transport = .standard(device.transport)
        options.clock = device.clock
        let preferences: JSONValue = [
            "userNameKey": .string(name), "isSavePwdKey": true, "userPwdKey": .string(remembered ?? ""),
        ]
        self.remembered = Array(preferences.text.utf8)
        do {
            client = try LegacyClient(
                scheme: scheme, baseURL: device.baseURL, login: login,
                vault: .folder("\(device.folder)/vault"),
                trust: device.trust, options: options)
        } catch {
            throw LabError("the victim's app: \(error)")
        }
    }

    func signIn() async throws(VictimError) {
        guard let password else { return }
        do {
            try await client.logIn(name, password)
        } catch {
            throw VictimError(error)
        }
        try? Files.write(remembered, to: "\(folder)/preferences.json")
    }

    func transfer(_ amount: Int, to name: String) async throws(VictimError) {
        let order = order(amount: amount, payee: name)
        lastOrder.with { $0 = order }
        try await repeatTransfer()
    }

    /// A legacy request does not identify the order, so a repetition is a new transfer.
    func repeatTransfer() async throws(VictimError) {
        guard let order = lastOrder.with({ $0 }) else { return }
        let answer = try await ask(order)
        guard answer.moved != nil else { throw VictimError(answer) }
    }

    func balance() async throws(VictimError) -> Int {
        var request = APIRequest(caller == .app ? "/balance?user=\(self.name)" : "/balance")
        request.caller = caller
        let answer = try await ask(request)
        guard let balance = answer.balance else { throw VictimError(answer) }
        return balance
    }

    /// Older clients renew only after a refusal of an expired token.
    func renew() async throws(VictimError) { throw .notOfThisScheme }

    private func order(amount: Int, payee: String) -> APIRequest {
        let user: [(String, JSONValue)] = caller == .app ? [("user", .string(name))] : []
        let members = user + [("to", .string(payee)), ("amount", .integer(Int64(amount)))]
        let (type, body): (String, String) =
            switch bodyFormat {
            case .json: ("application/json", JSONValue.object(members).text)
            case .form:
                (
                    "application/x-www-form-urlencoded",
                    RawForm(
                        (caller == .app ? [.init(name: "user", value: name)] : []) + [
                            .init(name: "to", value: payee), .init(name: "amount", value: "\(amount)"),
                        ]
                    )
                    .text
                )
            }
        var request = APIRequest(
            .post, "/transfer",
            fields: [HeaderField("Content-Type", value: type)]
                + (version.map { [HeaderField("X-App-Version", value: $0)] } ?? []),
            body: .bytes(Array(body.utf8)))
        request.caller = caller
        return request
    }

    private func ask(_ request: APIRequest) async throws(VictimError) -> BankResponse {
        do {
            return try await client.value(for: request, as: BankResponse.self)
        } catch {
            throw VictimError(error)
        }
    }
}
