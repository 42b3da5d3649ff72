import Countersign
import CountersignClient
import CountersignSeal
import CountersignWire
import Synchronization

/// An app on our SDK.
final class OwnVictim: Victim {
    let name: String
    let password: String?
    let folder: String
    private let method: CountersignClient.LogInMethod
    private let client: CountersignClient
    private let lastOrder = Mutex<APIRequest?>(nil)

    init(
        _ name: String, _ password: String, _ key: ReleaseKey, by method: CountersignClient.LogInMethod,
        on device: Device
    ) throws(StageFault) {
        self.name = name
        self.password = password
        self.method = method
        folder = device.folder
        var options = CountersignOptions()
        // What the attacks find must not depend on the machine that the lab runs on.
        options.deviceKeyStorage = .softwareOnly
        options.device = DeviceDescription(.phone, name: "\(name)'s")
        options.encryption = device.isPlain ? .noneSoThatAnybodyReadsAndChangesEverything : .required
        options.carriage = .standard(device.transport)
        options.clock = device.clock
        do {
            client = try CountersignClient(
                release: key, baseURL: device.baseURL, vault: .using(device.vault), trust: device.trust,
                options: options)
        } catch {
            throw StageFault("the victim's app: \(error)")
        }
    }

    func signIn() async throws(VictimProblem) {
        do {
            try await client.logIn(name, password ?? "", by: method)
        } catch {
            throw VictimProblem(error)
        }
    }

    func transfer(_ amount: Int, to payee: String) async throws(VictimProblem) {
        let order: JSONValue = ["to": .string(payee), "amount": .integer(Int64(amount))]
        var request = APIRequest(
            .post, "/transfer", fields: [HeaderField("Content-Type", "application/json")],
            body: .bytes(Array(order.text.utf8)))
        request.idempotencyKey = Base64.encode(SystemRandom().bytes(16).span, .url)
        let wish = request
        lastOrder.withLock { $0 = wish }
        try await tryAgain()
    }

    /// Under the key of the first time, as ``APIRequest/idempotencyKey`` has it for a wish that outlives the call.
    func tryAgain() async throws(VictimProblem) {
        guard let order = lastOrder.withLock({ $0 }) else { return }
        let answer = try await ask(order)
        guard answer.moved != nil else { throw VictimProblem(answer) }
    }

    func balance() async throws(VictimProblem) -> Int {
        let answer = try await ask(APIRequest("/balance"))
        guard let balance = answer.balance else { throw VictimProblem(answer) }
        return balance
    }

    func renew() async throws(VictimProblem) {
        do {
            try await client.renew()
        } catch {
            throw VictimProblem(error)
        }
    }

    func memory() async throws(VictimProblem) -> PersistedState? {
        do {
            return try await client.kept()
        } catch {
            throw VictimProblem(error)
        }
    }

    private func ask(_ request: APIRequest) async throws(VictimProblem) -> BankAnswer {
        do {
            return try await client.value(for: request, as: BankAnswer.self)
        } catch {
            throw VictimProblem(error)
        }
    }
}
