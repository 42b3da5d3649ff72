import Countersign
import CountersignLab
import CountersignSchemes
import CountersignSeal
import CountersignTestServer
import CountersignWire
import Foundation
import Testing

/// A reference server with a bank and two users, and the app of one of them: Countersign's client of older
/// schemes.
struct Scene {
    static let password = "marlin+1 984"
    let row: RowProfile
    let bank: Bank
    let server: ReferenceServer
    let folder: String
    let app = AppKey(
        id: "app-id", secret: Secret(copying: Array("app secret".utf8).span), ladder: "salt or key")

    init(_ name: String, tls authorities: StageCertificates? = nil) throws {
        row = try #require(RowCatalogue.all.first { $0.name == RowName(name) })
        folder = try newFolder()
        bank = try Bank(folder: folder)
        var tls: ReferenceTLS?
        if let authorities { tls = try ReferenceTLS(authorities.server, folder: folder) }
        server = try ReferenceServer(row: row, appKey: app, bank: bank, folder: folder, tls: tls)
        for (id, user) in [(7, "anna"), (8, "bob"), (9, "thief")] as [(Int64, String)] {
            try bank.open(name: user, userID: id)
            try server.add(name: user, userID: id, password: row.hasPasswords ? Scene.password : nil)
        }
    }

    func stop() async { await server.stop() }

    func send(_ request: RawRequest) throws -> RawResponse { try exchange(server.port, request) }

    func balance(_ name: String) throws -> Int { try bank.balance(of: name) }

    var moved: Int { get throws { try bank.journal().reduce(0) { $0 + $1.amount } } }

    // MARK: The app

    func client(trusting authorities: StageCertificates? = nil) throws -> LegacyClient {
        var options = LegacyOptions()
        options.bearerSecrets =
            authorities == nil ? .inTheClearToWhoeverListens : .toAnyCertificateThatVerifies
        options.encryption = authorities == nil ? .noneSoThatAnybodyReadsAndChangesEverything : .required
        if let authorities {
            var transport = TransportOptions()
            transport.authorities = .instead([authorities.bank.certificate])
            transport.addresses = [try Trust.Host(BankApp.host): try Trust.Host("127.0.0.1")]
            options.transport = .standard(transport)
        }
        let origin = authorities == nil ? "http://127.0.0.1" : "https://\(BankApp.host)"
        return try LegacyClient(
            scheme: try scheme, baseURL: "\(origin):\(server.port)", login: login,
            vault: .folder(try newFolder()), trust: .system, options: options)
    }

    private var scheme: LegacyScheme {
        get throws {
            let secret = "app secret"
            switch row.scheme {
            case .formMD5:
                return try .formMD5(appID: app.id, privateKey: secret, platform: "ios", version: "2.0")
            case .apiKey(.authV1): return try .authV1(key: app.id, secret: secret)
            case .apiKey(.authV2): return try .authV2(clientID: app.id, secret: secret)
            case .apiKey(.authV4): return try .authV4(clientID: app.id, secret: secret)
            case .apiKey(.sigV4):
                let id = try #require(KeyID(app.id))
                return .speaking(SigV4(), as: Credentials(keyID: id, key: SigningKey(app.secret)))
            default: return .unsigned
            }
        }
    }

    private var login: LegacyLogin? {
        switch row.scheme {
        case .ladder(.plainGet): LegacyLogin(.plainGet)
        case .ladder(.plainPost), .tokens, .openRoute: LegacyLogin(.plainPost)
        case .ladder(.base64): LegacyLogin(.base64)
        case .ladder(.md5), .formMD5: LegacyLogin(.md5)
        case .ladder(.md5Salt): LegacyLogin(.md5Salt(app.ladder))
        case .ladder(.hmacMD5): LegacyLogin(.hmacMD5(key: app.ladder))
        case .ladder(.hmacMD5Time): LegacyLogin(.hmacMD5Time(key: app.ladder))
        default: nil
        }
    }

    /// A transfer of ten from anna to bob, as the app sends it.
    var order: APIRequest {
        let isJSON = row.scheme == .apiKey(.authV4)
        let body = isJSON ? #"{"user":"anna","to":"bob","amount":10}"# : "user=anna&to=bob&amount=10"
        let type = isJSON ? "application/json" : "application/x-www-form-urlencoded"
        var order = APIRequest(
            .post, "/transfer", fields: [HeaderField("Content-Type", value: type)],
            body: .bytes(Array(body.utf8)))
        order.caller = row.hasPasswords ? .account : .app
        return order
    }

    var question: APIRequest {
        var question = APIRequest("/balance?user=anna")
        question.caller = row.hasPasswords ? .account : .app
        return question
    }

    /// The order as an eavesdropper has it.
    func captured(by client: LegacyClient) async throws -> RawRequest {
        let signed = try await client.signed(order)
        let url = try #require(URL(string: signed.url))
        let query = url.query(percentEncoded: true).map { "?\($0)" } ?? ""
        var request = RawRequest(method: "POST", target: url.path(percentEncoded: true) + query)
        request.fields = RawFields(
            signed.fields.map { .init(name: $0.name, value: String(decoding: $0.value, as: UTF8.self)) })
        request.fields["Host"] = "127.0.0.1:\(server.port)"
        if case .bytes(let bytes) = signed.body { request.body = bytes }
        return request
    }
}
