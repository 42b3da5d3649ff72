import Countersign
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignLab

/// Proves each documented flaw of a reference server by a transfer to the attacker or a repeated transfer, so
/// that the lab attacks servers like deployed ones.
@Suite struct FlawTests {
    /// A captured request of anna's that was not sent yet.
    private func scene(_ row: String) async throws -> (Scene, RawRequest) {
        let scene = try Scene(row)
        let client = try scene.client()
        if scene.row.hasPasswords { try await client.logIn("anna", Scene.password) }
        return (scene, try await scene.captured(by: client))
    }

    private func thiefHas(_ amount: Int, _ scene: Scene) throws -> Bool {
        try scene.balance("thief") == Bank.openingBalance + amount
    }

    @Test(arguments: ["md5", "form-md5", "auth-v1", "auth-v2", "auth-v4", "sigv4"])
    func theSameRequestIsTakenTwice(_ row: String) async throws {
        let (scene, request) = try await scene(row)
        for _ in 1...2 { #expect(try scene.send(request).text == #"{"moved":10}"#) }
        #expect(try scene.moved == 20)
        await scene.stop()
    }

    /// A client that reaches the backend without the gateway can claim any account.
    @Test func theBackendOfOpenRoutesBelievesAFieldBeforeAToken() async throws {
        let (scene, request) = try await scene("open-route+gateway")
        #expect(try scene.send(request).text == #"{"moved":10}"#)
        var stranger = request.paying("thief")
        stranger.fields.remove("Authorization")
        #expect(try scene.send(stranger).text.contains("-100"))
        stranger.fields.lines.append(.init(name: "Countersign-Account", value: "name:bob"))
        #expect(try scene.send(stranger).text == #"{"moved":10}"#)
        // bob received the same amount from anna.
        #expect(try scene.balance("bob") == Bank.openingBalance)
        #expect(try thiefHas(10, scene))
        await scene.stop()
    }

    @Test func formMD5SignsNothingBehindANUL() async throws {
        var (scene, request) = try await scene("form-md5")
        request.body += [0] + Array("&to=thief".utf8)
        #expect(try scene.send(request).text == #"{"moved":10}"#)
        #expect(try thiefHas(10, scene))
        await scene.stop()
    }

    @Test func formMD5LetsAValueSwallowOthers() async throws {
        var (scene, request) = try await scene("form-md5")
        let form = String(decoding: request.body, as: UTF8.self)
        let time = try #require(LenientParameters(request)["timestamp"])
        // `to` moves into the timestamp, whose end is ignored; another `to` is in the query.
        request.target = "/transfer?to=thief"
        let pairs = form.split(separator: "&").filter { !$0.hasPrefix("to=") && !$0.hasPrefix("timestamp=") }
        request.body = Array("\(pairs.joined(separator: "&"))&timestamp=\(time)%26to%3Dbob".utf8)
        #expect(try scene.send(request).text == #"{"moved":10}"#)
        #expect(try thiefHas(10, scene))
        await scene.stop()
    }

    @Test func formMD5SignsNeitherMethodNorPath() async throws {
        var (scene, request) = try await scene("form-md5")
        request.target = "/balance"
        #expect(try scene.send(request).text.contains(try scene.bank.cardNumber(of: "anna")))
        await scene.stop()
    }

    @Test func authV1ReadsABodyThatItDidNotCheck() async throws {
        var (scene, request) = try await scene("auth-v1")
        request.target = "/transfer?\(String(decoding: request.body, as: UTF8.self))"
        request.body = Array("to=thief".utf8)
        #expect(try scene.send(request).text == #"{"moved":10}"#)
        #expect(try thiefHas(10, scene))
        await scene.stop()
    }

    @Test func authV1FoldsTheCaseOfNames() async throws {
        var (scene, request) = try await scene("auth-v1")
        let form = String(decoding: request.body, as: UTF8.self)
        request.body = Array("to=thief&\(form.replacing("to=bob", with: "TO=bob"))".utf8)
        #expect(try scene.send(request).text == #"{"moved":10}"#)
        #expect(try thiefHas(10, scene))
        await scene.stop()
    }

    @Test func authV1LetsAValueSwallowOthers() async throws {
        let scene = try Scene("auth-v1")
        // The attacker's own app signs the text typed as the payee.
        var order = APIRequest(
            .post, "/transfer",
            fields: [HeaderField("Content-Type", value: "application/x-www-form-urlencoded")],
            body: .bytes(Array("user=thief&amount=10&to=thief%26user%3Danna%26v%3D".utf8)))
        order.caller = .app
        let signed = try await scene.client().signed(order)
        guard case .bytes(let bytes) = signed.body else {
            Issue.record("no body")
            return
        }
        let form = LenientParameters(LenientParameters.form(bytes))
        let kept = form.pairs.filter { $0.name != "to" && $0.name != "user" }.map { "\($0.name)=\($0.value)" }
        let body = (kept + ["to=thief", "user=anna", "v=%26user%3Dthief"]).joined(separator: "&")
        #expect(try scene.send(.form("/transfer", body)).text == #"{"moved":10}"#)
        #expect(try thiefHas(10, scene))
        await scene.stop()
    }

    @Test func authV2TakesAnyTimestamp() async throws {
        var (scene, request) = try await scene("auth-v2")
        let form = String(decoding: request.body, as: UTF8.self)
        let time = try #require(LenientParameters(request)["auth_timestamp"])
        let hourLater = try #require(Int(time)) + 3600
        request.body = Array(form.replacing(time, with: "\(hourLater)").utf8)
        #expect(request.body != Array(form.utf8))
        #expect(try scene.send(request).text == #"{"moved":10}"#)
        await scene.stop()
    }

    @Test(arguments: [#""to":"thief""#, #""TO":"thief""#])
    func authV4ChecksAnotherMemberThanItReads(_ member: String) async throws {
        var (scene, request) = try await scene("auth-v4")
        let body = String(decoding: request.body, as: UTF8.self)
        // Of members whose names are equal in lower case the first is signed; of equal names the last is
        // read.
        let isFolded = member.contains("TO")
        let changed =
            isFolded
            ? body.replacing(#""to":"bob""#, with: #""TO":"bob","to":"thief""#)
            : "\(body.dropLast()),\(member)}"
        request.body = Array(changed.utf8)
        #expect(try scene.send(request).text == #"{"moved":10}"#)
        #expect(try thiefHas(10, scene))
        await scene.stop()
    }

    @Test func authV4TakesAnyTimestamp() async throws {
        var (scene, request) = try await scene("auth-v4")
        let time = try #require(request.fields["x-auth-timestamp"].flatMap { Int($0) })
        request.fields["x-auth-timestamp"] = "\(time - 3600)"
        #expect(try scene.send(request).text == #"{"moved":10}"#)
        await scene.stop()
    }

    @Test(arguments: ["plain-get", "md5-salt", "hmac-md5", "hmac-md5-time"])
    func aRecordedLoginSignsInAgain(_ row: String) async throws {
        let scene = try Scene(row)
        let value: String
        switch row {
        case "plain-get": value = Scene.password
        default:
            let stolen = try await scene.server.copyDatabase()
            let kept = try #require(
                LabDatabase(path: stolen[0], schema: "").query(
                    "SELECT password FROM users WHERE name = 'anna'"
                )
                .first?[0].text)
            guard row != "hmac-md5-time" else {
                // The stored value is not the sent value: an attack needs the app's key as well.
                #expect(kept.utf8.count == 32)
                await scene.stop()
                return
            }
            value = kept
        }
        var form: [UInt8] = []
        Form.append("username", value: Array("anna".utf8).span, to: &form)
        Form.append("password", value: Array(value.utf8).span, to: &form)
        let text = String(decoding: form, as: UTF8.self)
        let request =
            row == "plain-get"
            ? RawRequest(method: "GET", target: "/login/login.php?\(text)") : .form("/login/login.php", text)
        for _ in 1...2 { #expect(try scene.send(request).text.contains("loginToken")) }
        await scene.stop()
    }

    @Test func tokensAreKeptAsTheyAre() async throws {
        let (scene, request) = try await scene("md5")
        let stolen = try await scene.server.copyDatabase()
        let token = try #require(
            LabDatabase(path: stolen[0], schema: "").query("SELECT token FROM tokens").first?[0].text)
        #expect(request.fields["authorization"] == "Bearer \(token)")
        await scene.stop()
    }

    @Test func whoHasAnAccountIsToldToAnybody() async throws {
        let scene = try Scene("tokens-tls")
        func ask(_ name: String) throws -> String {
            try scene.send(.form("/login/login.php", "username=\(name)&password=x")).text
        }
        #expect(try ask("anna").contains("wrong password"))
        #expect(try ask("nobody").contains("no such user"))
        await scene.stop()
    }

    /// So the time tells them apart as well.
    @Test func onlyTheNameOfAnAccountCostsAHash() throws {
        let folder = try Files.makeTemporaryFolder("flaw-tests")
        defer { Files.removeFolder(folder) }
        let database = try ReferenceDatabase(path: "\(folder)/users.db")
        try database.add(ReferenceDatabase.User(id: 1, name: "anna", password: "not a hash"))
        let login = ReferencePasswordLogin(database)
        func ask(_ name: String) throws -> RawResponse? {
            try login.page(.form("/login/login.php", "username=\(name)&password=x"))
        }
        #expect(throws: LabError.self) { try ask("anna") }
        #expect(try ask("nobody")?.text.contains("no such user") == true)
    }

    @Test func nothingLimitsTheAttempts() async throws {
        let scene = try Scene("md5")
        for guess in WordList.standard.all.prefix(60) {
            #expect(
                try scene.send(.form("/login/login.php", "username=anna&password=\(guess)")).text
                    == #"{"userId":0}"#)
        }
        let client = try scene.client()
        try await client.logIn("anna", Scene.password)
        await scene.stop()
    }
}
