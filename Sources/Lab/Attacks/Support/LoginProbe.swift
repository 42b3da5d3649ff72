import CountersignSeal
import CountersignWire

/// A login with a password that is nobody's, as a stranger sends it: what is asked is only how the server takes the name.
struct LoginProbe: Sendable {
    let stage: Stage

    /// The request whose answer may depend on the name. Throws where the scheme has none.
    func request(_ name: String) throws(StageFault) -> RawRequest {
        if let login = stage.craft.login(name: name, password: "\(SystemRandom().bytes(6))", key: stage.appKey) {
            return login
        }
        guard
            let start = stage.forgery.post(
                "/countersign/v1/login/start", try start(name), under: stage.appKey.id, signedWith: stage.appKey.secret)
        else { throw StageFault("\(stage.row.name): a login cannot be written") }
        return start
    }

    /// What follows on the answer to it; nil where nothing does.
    func request(after response: RawResponse) -> RawRequest? {
        guard let document = try? JSONReader.read(response.body), let login = document.root["login_id"]?.string else {
            return nil
        }
        let random = SystemRandom()
        let body: JSONValue = [
            "login_id": .string(login), "ke3": .base64(random.bytes(64)), "signature": .base64(random.bytes(64)),
            "mac": .base64(random.bytes(32)),
        ]
        return stage.forgery.post(
            "/countersign/v1/login/finish", body, under: stage.appKey.id, signedWith: stage.appKey.secret)
    }

    /// OPAQUE's first message about no password at all, from a device with keys of its own.
    private func start(_ name: String) throws(StageFault) -> JSONValue {
        do {
            let random = SystemRandom()
            let element = try Ristretto255.Element(generatorTimes: .random(random))
            let share = try Ristretto255.Element(generatorTimes: .random(random))
            let device: JSONValue = [
                "signing_key": .base64(try AgreementKey().publicPoint.bytes),
                "agreement_key": .base64(try AgreementKey().publicPoint.bytes), "class": "phone", "name": "some phone",
            ]
            return [
                "account": .string(name), "ke1": .base64(element.bytes + random.bytes(32) + share.bytes),
                "device": device,
            ]
        } catch {
            throw StageFault("\(stage.row.name): a login cannot be computed: \(error)")
        }
    }
}

extension Stage {
    /// Makes sure that what the attacker signs with the app's key is signed right: else every forgery would be refused for that.
    func proveForgery() async throws {
        guard row.isOurs else { return }
        let response = try await network.send(LoginProbe(stage: self).request("nobody at all"))
        // The same as about a name that is somebody's.
        guard response.status == 200, response.member("login_id") != nil else {
            throw StageFault("\(row.name): expected a login to begin, by what the app's key signs: \(response.shown)")
        }
    }
}
