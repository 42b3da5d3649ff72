import Countersign
import CountersignClient
import CountersignMemory
import CountersignSeal
import CountersignWire

/// An app built on the SDK.
final class SDKVictim: Victim {
    let name: String
    let password: String?
    let folder: String
    private let method: CountersignClient.LogInMethod
    private let client: CountersignClient
    private let lastOrder = Locked<APIRequest?>(nil)

    init(
        name: String, password: String, key: ReleaseKey, by method: CountersignClient.LogInMethod,
        on device: VictimDevice
    ) throws(LabError) {
        self.name = name
        self.password = password
        self.method = method
        folder = device.folder
        var options = CountersignOptions()
        // Results must not depend on the hardware of the lab's machine.
        options.deviceKeyStorage = .softwareOnly
        options.device = DeviceDescription(.phone, name: "\(name)'s")
        options.encryption = device.isPlain ? .noneSoThatAnybodyReadsAndChangesEverything : .required
        options.transport = .standard(device.transport)
        options.clock = device.clock
        do {
            client = try CountersignClient(
                release: key, baseURL: device.baseURL, vault: .using(device.vault), trust: device.trust,
                options: options)
        } catch {
            throw LabError("the victim's app: \(error)")
        }
    }

    func signIn() async throws(VictimError) {
        do {
            try await client.logIn(name, password ?? "", by: method)
        } catch {
            throw VictimError(error)
        }
    }

    func transfer(_ amount: Int, to payee: String) async throws(VictimError) {
        let order: JSONValue = ["to": .string(payee), "amount": .integer(Int64(amount))]
        var request = APIRequest(
            .post, "/transfer", fields: [HeaderField("Content-Type", value: "application/json")],
            body: .bytes(Array(order.text.utf8)))
        request.idempotencyKey = Base64.encode(SystemRandom().bytes(16).span, as: .url)
        let wish = request
        lastOrder.with { $0 = wish }
        try await repeatTransfer()
    }

    /// Repeats the transfer with the same ``APIRequest/idempotencyKey``.
    func repeatTransfer() async throws(VictimError) {
        guard let order = lastOrder.with({ $0 }) else { return }
        let answer = try await ask(order)
        guard answer.moved != nil else { throw VictimError(answer) }
    }

    func balance() async throws(VictimError) -> Int {
        let answer = try await ask(APIRequest("/balance"))
        guard let balance = answer.balance else { throw VictimError(answer) }
        return balance
    }

    func renew() async throws(VictimError) {
        do {
            try await client.renew()
        } catch {
            throw VictimError(error)
        }
    }

    func stateInMemory() async throws(VictimError) -> PersistedState? {
        do {
            return try await client.kept()
        } catch {
            throw VictimError(error)
        }
    }

    private func ask(_ request: APIRequest) async throws(VictimError) -> BankResponse {
        do {
            return try await client.value(for: request, as: BankResponse.self)
        } catch {
            throw VictimError(error)
        }
    }
}
