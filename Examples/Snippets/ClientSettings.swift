// All options of a client, interceptors, changing pins, and events for a log.
import Countersign
import Foundation

func options() -> CountersignOptions {
    var options = CountersignOptions()
    options.device = DeviceDescription(.phone, name: "Anna's phone")
    options.userAgent = "notes/3.1"
    options.json = .snakeCase
    options.interceptors = [Languages()]
    options.largestAnswer = 4 << 20
    options.whenPaused = .wait
    options.remembers = .session
    return options
}

/// Options that few apps set, such as time-outs, a proxy and the number of simultaneous requests.
func rareOptions() -> CountersignOptions {
    var transport = TransportOptions()
    transport.concurrentRequests = 4
    var options = CountersignOptions()
    options.transport = .standard(transport)
    options.routes = "/countersign/v1"
    options.clock = .system
    options.encryption = CountersignOptions.Encryption.required
    options.whenPaused = CountersignOptions.Pause.fail
    options.remembers = CountersignOptions.Remembering.nothing
    options.bearerSecrets = CountersignOptions.BearerSecrets.onlyToThePinnedCertificate
    options.json = JSONCoding(encoder: JSONEncoder(), decoder: JSONDecoder())
    options.json.encoder.outputFormatting = .sortedKeys
    options.json.decoder.dateDecodingStrategy = .iso8601
    return options
}

/// The option while accounts leave the login ladder of an older system, and after that.
func passwordLogin(whileAccountsMove isMoving: Bool) -> CountersignOptions {
    var options = CountersignOptions()
    options.passwordLogin = CountersignOptions.PasswordLogin.never
    if isMoving {
        options.passwordLogin = .onFirstSignInOverPinnedTLS
    }
    return options
}

/// For a test bench on this machine: no TLS, and passwords to any certificate.
func benchOptions(_ carrier: any RequestTransport) -> CountersignOptions {
    var options = CountersignOptions()
    options.encryption = .noneSoThatAnybodyReadsAndChangesEverything
    options.bearerSecrets = .toAnyCertificateThatVerifies
    options.missingAuthorityKey = CountersignOptions.MissingAuthorityKey.leavesRefusalsUnverified
    options.transport = CountersignOptions.TransportChoice.custom(carrier)
    options.json = .standard
    options.missingAuthorityKey = .isAnError
    return options
}

/// Changes each request before it is signed; receives each response.
struct Languages: APIInterceptor {
    func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer {
        var request = request
        request.set("Accept-Language", "de-AT")
        return try await next(request)
    }
}

/// Returns a stored response while the device is offline.
struct Offline: APIInterceptor {
    func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer {
        do {
            return try await next(request)
        } catch {
            guard error.isOffline else { throw error }
            return APIAnswer(status: 200, fields: [HeaderField("Age", value: "3600")], body: Array("[]".utf8))
        }
    }
}

/// Replaces the head of a response and keeps its body.
func quiet(_ answer: APIAnswer) -> APIAnswer {
    let head = APIResponse(status: 200, fields: [], length: .unknown, signer: APIResponse.Signer.nobody)
    let body: APIBytes = answer.body
    return APIAnswer(head, body)
}

func small(_ answer: APIAnswer) async throws -> [UInt8] { try await answer.body.collect(upTo: 1024) }

/// Lets an offline key replace the pins.
func withPins(_ options: CountersignOptions, _ keys: [[UInt8]], file: String) -> CountersignOptions {
    var options = options
    var signers = PinUpdates.Signers(app: "notes", keys: keys, version: 3, store: ManifestFile(file))
    print(signers.app, signers.keys.count, signers.version, signers.store)
    signers.version = 4
    options.pinUpdates = keys.isEmpty ? PinUpdates.none : .signed(signers)
    return options
}

/// Requires ten characters, and rejects passwords in the app's list.
func withPasswordRules(_ options: CountersignOptions, known: Set<String>) -> CountersignOptions {
    var options = options
    var rules = PasswordRules()
    rules.minimumLength = 10
    rules.isBreached = { password in known.contains(password) }
    options.passwordRules = rules
    return options
}

func takeUp(_ manifest: [UInt8], _ client: CountersignClient) throws {
    print(try client.updatePins(manifest))
    print(client.discardedPins?.description ?? "the stored pins are in force")
}

/// Fetches a manifest from the authority, for example once a day.
func refreshPins(_ client: CountersignClient) async throws { print(try await client.fetchPins() ?? 0) }

/// Writes a log without secrets, since events contain none.
func log(_ client: CountersignClient) async {
    for await event: CountersignEvent in client.events {
        switch event {
        case .began(let call): print(call.number, call.method, call.host, call.path)
        case .sent(let call, let copy, .lostAnswer): print(call.number, copy, "its answer was lost")
        case .sent(let call, let copy, .backOff(let delay)): print(call.number, copy, "after \(delay)")
        case .sent(let call, let copy, .refused(let code)): print(call.number, copy, code)
        case .sent(let call, let copy, .other), .sent(let call, let copy, nil): print(call.number, copy)
        case .answered(let call, let status, let signer, let after): print(call.number, status, signer, after)
        case .failed(let call, let failure, let after): print(call.number, failure.rawValue, after)
        case .refreshing: print("renewing")
        case .refreshed(.renewed): print("renewed")
        case .refreshed(.refused(let status)): print("not renewed: \(status)")
        case .refreshed(.lost): print("no answer")
        case .clockCorrected(let offset): print("clock: \(offset) s")
        case .judged(let verdict): print(verdict)
        case .pinsReplaced(let version): print("pins: \(version)")
        case .pinsDiscarded(let error): print("pins as built in: \(error)")
        case .state(let state): print(state.rawValue)
        case .presenceNeeded: print("presence needed")
        case .updateAvailable(let url, let at): print(url?.description ?? "-", at ?? 0)
        }
    }
}

/// The address of an update; a log contains it without the query.
func open(_ link: CountersignEvent.Link) -> String { link == CountersignEvent.Link("") ? "-" : link.url }

/// The public parts of a key.
func describe(_ key: ReleaseKey) -> String { "\(key.description) of \(key.app ?? "an app"), id \(key.id)" }

/// The kinds of devices.
let kinds: [DeviceDescription.Kind] = [.phone, .tablet, .watch, .tv, .desktop, .other]

/// How an event describes the outcome of a renewal and the failure of a call.
let lost = CountersignEvent.Refreshed.lost
let noNetwork: [CountersignEvent.Failure] = [.offline, .connection]

/// Accepts only the server whose URL is in the app's settings.
func trustInOneServer(baseURL: String, pins: [String], backups: [String]) throws -> Trust {
    try Trust([.host(ofBaseURL: baseURL, pins: pins, backups: backups)], others: .refused)
}

/// The same by the system's own authorities.
func trustWithoutPins(baseURL: String) throws -> Trust {
    Trust([try .host(ofBaseURL: baseURL, .system)], others: .refused)
}
