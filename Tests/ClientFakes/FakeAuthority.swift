import CountersignHandshake
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A small authority written from the protocol's text without code of the server, so that it does not share
/// its mistakes.
package actor FakeAuthority {
    package nonisolated let app = "demo"
    package nonisolated let releaseID = KeyID("r_1")
    /// The app's next version, with the same key.
    package nonisolated let updatedID = KeyID("r_2")
    /// The release that signed the request that is answered.
    private var signer = ""
    package nonisolated let release: SigningKey
    package nonisolated let answerKey: PrivateKey
    package nonisolated let nextAnswerKey: PrivateKey
    /// Signs with `nextAnswerKey` in place of `answerKey`.
    private var hasRotated = false
    private let opaque: ServerKeys
    private let receiver: SealedBox.Receiver
    private var accounts: [String: (credential: [UInt8], record: RegistrationRecord)] = [:]
    private var pending: [[UInt8]: Pending] = [:]
    /// Passwords of accounts on the login ladder, by name.
    private var ladder: [String: String] = [:]
    package private(set) var session: FakeSession?
    private var passwordMinimum: Int64? = 1
    /// Earlier sessions, which ended when the present one began.
    private var former: [FakeSession] = []
    /// The code that resets a password.
    package nonisolated let resetCode = "ABCD-EFGH-JKMN-PQRS-TVWX"
    /// Seconds since 1970, by the authority.
    package private(set) var now: Int64 = 1_800_000_000
    /// How many of the next logins take too long.
    package var loginsToExpire = 0
    /// The number of accepted session requests.
    package private(set) var accepted = 0
    package private(set) var refreshes = 0
    /// The number of executions for each idempotency key; under "" the requests without one.
    package private(set) var done: [String: Int] = [:]
    /// In whose name each was done.
    package private(set) var doneFor: [String: String] = [:]
    /// The bodies of requests for upload tickets.
    package private(set) var uploadsAsked: [[UInt8]] = []
    private var transcripts: Set<[UInt8]> = []

    private var signatures: Set<[UInt8]> = []

    /// Nil states no minimum, which no authority does.
    package func demandPasswords(of characters: Int64?) { passwordMinimum = characters }

    private struct Pending {
        let binding: LoginBinding
        let ke1: [UInt8]
        let ke2: [UInt8]
        let sessionKey: (KE3) -> Secret?
    }

    package init() throws {
        release = SigningKey(Secret(random: 32))
        answerKey = try PrivateKey(random: .ed25519)
        nextAnswerKey = try PrivateKey(random: .ed25519)
        opaque = try ServerKeys.random()
        guard let receiver = SealedBox.Receiver(Secret(random: 32)) else { throw Problem.broken }
        self.receiver = receiver
    }

    /// One with the keys, accounts and session of another: what either is asked from here on is nothing to
    /// the other.
    private init(
        _ release: SigningKey, _ answerKey: PrivateKey, _ nextAnswerKey: PrivateKey, _ opaque: ServerKeys,
        _ receiver: SealedBox.Receiver,
        _ accounts: [String: (credential: [UInt8], record: RegistrationRecord)], _ session: FakeSession?,
        at now: Int64
    ) {
        (self.release, self.answerKey, self.opaque, self.receiver) = (release, answerKey, opaque, receiver)
        (self.accounts, self.session, self.now) = (accounts, session, now)
        self.nextAnswerKey = nextAnswerKey
    }

    package func copy() -> FakeAuthority {
        FakeAuthority(release, answerKey, nextAnswerKey, opaque, receiver, accounts, session, at: now)
    }

    package enum Problem: Error { case broken }

    package func signWithNextKey(_ hasRotated: Bool) { self.hasRotated = hasRotated }

    private var ownKey: SigningKey { SigningKey(hasRotated ? nextAnswerKey : answerKey) }

    package func advance(by seconds: Int64) { now += seconds }
    package func putOnLadder(_ name: String, _ password: String) { ladder[name] = password }
    package func isOnLadder(_ name: String) -> Bool { ladder[name] != nil }
    /// The token is out, though it was given for longer.
    package func expire() { session?.expire() }
    package func end(_ reason: String) { session?.ended = reason }
    /// As after a lost store: the offer that was made is not known any more.
    package func loseSuccessor() { session?.successor = nil }

    /// To a copy that was changed on its way: signed for the original, which it did not see.
    package func refusal(_ code: String, to draft: Draft) throws -> Response { try refuse(code, draft) }

    /// What a backend answered to a first copy, given again: signed by us, with what it said then.
    package func repetition(of code: String, to draft: Draft) throws -> Response {
        guard let session else { throw Problem.broken }
        let signer = Credentials(
            keyID: KeyID(session.token(session.epoch)), key: session.key(of: session.epoch))
        let body = Array(
            JSONValue.object([("code", .string(code)), ("time", .integer(now + 9_000))]).text.utf8)
        let mark = Draft.Field(name: "Countersign-Replayed", value: "true")
        let fields = try MessageSignatures().sign(
            status: 401, body: body, alsoCovering: [mark], answering: draft.request(), as: signer, at: now)
        return Response(status: 401, fields: (fields ?? []) + [mark], body: body)
    }

    /// A signed time response that is bound to its contents alone, not to a request.
    package func unboundTime(_ nonce: String) throws -> Response {
        guard let own = KeyID(MessageSignatures.authorityKeyID) else { throw Problem.broken }
        let body = Array(JSONValue.object([("time", .integer(now)), ("nonce", .string(nonce))]).text.utf8)
        let fields = try MessageSignatures().sign(
            status: 200, body: body, as: Credentials(keyID: own, key: ownKey), at: now)
        return Response(status: 200, fields: fields ?? [], body: body)
    }

    /// A response with this body to the same request, signed with the authority's own key.
    package func resigned(_ response: Response, body: [UInt8], to draft: Draft) throws -> Response {
        try reply(response.status, bytes: body, draft, nil)
    }

    package func answer(_ draft: Draft) throws -> Response {
        let request = draft.request()
        var workspace = Workspace()
        guard let claim = try MessageSignatures().claim(in: request, workspace: &workspace) else {
            throw Problem.broken
        }
        try MessageSignatures().writeStringToSign(for: claim, of: request, into: &workspace)
        let path = String(decoding: draft.target.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
        if case .unix(let created) = claim.created, abs(created - now) > 60, !path.hasSuffix("/time") {
            return try reply(401, ["code": "stale", "time": .integer(now)], draft, nil)
        }
        let signature = draft.fields.first { $0.name == "Signature" }?.value ?? []
        guard signatures.insert(signature).inserted else { return try refuse("replayed", draft) }
        if claim.keyID == releaseID || claim.keyID == updatedID {
            signer = claim.keyID.description
            guard claim.compare(with: release, workspace: workspace) == .equal else {
                return try refuse("bad-signature", draft)
            }
            return try serve(path, draft)
        }
        if let old = former.first(where: { $0.epoch(named: claim.keyID) != nil }),
            let epoch = old.epoch(named: claim.keyID)
        {
            let key = old.key(of: epoch)
            guard claim.compare(with: key, workspace: workspace) == .equal else {
                return try refuse("bad-signature", draft)
            }
            return try reply(
                401,
                ["code": "session-ended", "reason": .string(old.ended ?? "replaced"), "at": .integer(now)],
                draft,
                Credentials(keyID: claim.keyID, key: key))
        }
        guard let session, let epoch = session.epoch(named: claim.keyID) else {
            return try refuse("unknown-key", draft)
        }
        let key = session.key(of: epoch)
        guard claim.compare(with: key, workspace: workspace) == .equal else {
            return try refuse("bad-signature", draft)
        }
        let signer = Credentials(keyID: claim.keyID, key: key)
        if let reason = session.ended {
            return try reply(
                401, ["code": "session-ended", "reason": .string(reason), "at": .integer(now)], draft, signer)
        }
        self.session?.use(epoch, at: now)
        if !path.hasSuffix("/logout"), self.session?.isOver(epoch, at: now) != false {
            return try refuse("token-expired", draft, signer)
        }
        let named = draft.fields.first { $0.name.lowercased() == "countersign-release" }?.value ?? []
        guard path.hasSuffix("/logout") || session.releases[epoch] == String(decoding: named, as: UTF8.self)
        else {
            return try refuse("token-expired", draft, signer)
        }
        if path == "/pay", try !isSigned(draft, by: session.device) {
            return try refuse("device-unsigned", draft, signer)
        }
        accepted += 1
        if draft.method != "GET", isNew(draft) { work(draft, session) }
        if path.hasSuffix("/logout") { self.session?.ended = "signed-out" }
        if path.hasSuffix("/uploads") {
            uploadsAsked.append(draft.body)
            let ticket = "u_" + String(repeating: "A", count: 43)
            return try reply(201, ["ticket": .string(ticket), "expires": .integer(now + 60)], draft, signer)
        }
        if path.hasSuffix("/session") { return try reply(200, describe(session), draft, signer) }
        return try reply(200, ["ok": true, "method": .string(draft.method)], draft, signer)
    }

    /// Whether the device itself has signed it, beside its session.
    private func isSigned(_ draft: Draft, by device: Device) throws -> Bool {
        let request = draft.request()
        var workspace = Workspace()
        guard let first = try MessageSignatures().claim(in: request, workspace: &workspace),
            let second = try MessageSignatures().deviceClaim(
                in: request, over: first.label, workspace: &workspace)
        else { return false }
        try MessageSignatures().writeStringToSign(for: second, of: request, into: &workspace)
        return second.compare(with: SigningKey(try device.signingKey.verifyingKey()), workspace: workspace)
            == .equal
    }

    private func wish(_ draft: Draft) -> String {
        draft.fields.first { $0.name == "Idempotency-Key" }.map { String(decoding: $0.value, as: UTF8.self) }
            ?? ""
    }

    private func isNew(_ draft: Draft) -> Bool { done[wish(draft)] == nil || wish(draft).isEmpty }

    private func work(_ draft: Draft, _ session: FakeSession) {
        done[wish(draft), default: 0] += 1
        doneFor[wish(draft)] = session.account
    }

    private func describe(_ session: FakeSession) -> JSONValue {
        [
            "account": .string(session.account), "session": .string(session.id.description),
            "created": .integer(now),
            "used": .integer(now), "expires": .integer(session.expires), "idle": .integer(now + 90 * 86_400),
            "device": [
                "class": .string(session.device.kind.rawValue),
                "name": .string(session.device.name.description),
            ],
        ]
    }

    private func serve(_ path: String, _ draft: Draft) throws -> Response {
        let body = draft.body.isEmpty ? Array("{}".utf8) : draft.body
        let document = try JSONReader.read(body)
        func text(_ name: String) throws -> String {
            guard let text = document.root[name]?.string else { throw Problem.broken }
            return text
        }
        func bytes(_ name: String) throws -> [UInt8] {
            guard let bytes = Base64.decode(try text(name), as: .url) else { throw Problem.broken }
            return bytes
        }
        switch path.split(separator: "/").dropFirst(2).joined(separator: "/") {
        case "time":
            let nonce = String(decoding: draft.target, as: UTF8.self).split(separator: "=").last ?? ""
            return try reply(200, ["time": .integer(now), "nonce": .string(String(nonce))], draft, nil)
        case "registration/start":
            let credential = SystemRandom().bytes(16)
            let response = try opaque.respond(
                to: RegistrationRequest(bytes("request")), credential: credential)
            return try reply(
                200,
                [
                    "response": .bytes(response.bytes), "handle": .bytes(credential),
                    "registration_key": .bytes(receiver.publicHalf), "app": .string(app),
                    "password_min": passwordMinimum.map { .integer($0) } ?? .null,
                ], draft, nil)
        case "registration/finish":
            let (name, handle) = (try text("account"), try bytes("handle"))
            let account = try AccountName(normalizing: name)
            let opened = try receiver.open(
                bytes("sealed_record"),
                for: SealedRegistration.purpose(app: app, account: account, handle: handle))
            guard let sealed = SealedRegistration(opened) else { throw Problem.broken }
            if let code = sealed.resetCode {
                guard accounts[name] != nil, code.withExposedBytes({ $0.text }) == resetCode else {
                    return try refuse("wrong-credentials", draft)
                }
            } else if accounts[name] != nil {
                return try refuse("name-taken", draft)
            }
            accounts[name] = (handle, try RegistrationRecord(sealed.record))
            return try reply(200, ["account": .string(name)], draft, nil)
        case "login/start":
            return try startLogin(draft, document.root, ke1: bytes("ke1"), account: text("account"))
        case "login/finish":
            return try finishLogin(
                draft, id: bytes("login_id"), ke3: bytes("ke3"), signature: bytes("signature"),
                mac: bytes("mac"))
        case "login/password":
            return try logInByPassword(draft, text("account"), text("password"))
        case "logout":
            return try reply(200, [:], draft, nil)
        case "token":
            return try renew(
                draft, token: text("token"), attempt: bytes("attempt"), mac: bytes("mac"),
                signature: bytes("signature"), nonce: bytes("nonce"),
                isReport: text("purpose") == "report-reuse", numbers: document)
        default: return try refuse("malformed", draft)
        }
    }

    /// A right one takes its account off the ladder. Source: docs/protocol.md, "Accounts on the ladder, and
    /// new clients".
    private func logInByPassword(_ draft: Draft, _ name: String, _ password: String) throws -> Response {
        guard ladder[name] == password else { return try refuse("wrong-credentials", draft) }
        ladder[name] = nil
        let registration = try ClientRegistration(
            Password(typed: Secret(copying: Array(password.utf8).span)))
        let credential = SystemRandom().bytes(16)
        let account = try AccountName(normalizing: name)
        guard let parties = LoginBinding.parties(app: app, account: account) else { throw Problem.broken }
        let response = try opaque.respond(to: registration.request, credential: credential)
        accounts[name] = (
            credential, try registration.finish(response, as: parties, stretching: .standard).record
        )
        let session = Base64.encode([UInt8](repeating: 7, count: SessionID.count).span, as: .url)
        return try reply(
            200,
            [
                "account": .string(name), "session": .string(session), "token": "b_token-of-one",
                "login_token": "l_token-of-one", "expires": .integer(now + 7_200),
                "idle": .integer(now + 90_000),
                "slots": "single",
            ], draft, nil)
    }

    private func startLogin(_ draft: Draft, _ body: JSON, ke1: [UInt8], account: String) throws -> Response {
        guard let device = body["device"].flatMap(Device.init(json:)) else { throw Problem.broken }
        let binding = LoginBinding(
            app: app, account: try AccountName(normalizing: account), release: "r_1", device: device)
        guard let parties = binding.parties, let context = binding.context else { throw Problem.broken }
        let found = accounts[account]
        let login = try ServerLogin(
            KE1(ke1), record: found?.record ?? opaque.fakeRecord, credential: found?.credential ?? [1],
            as: parties,
            context: context, keys: opaque)
        let ke2 = login.ke2.bytes
        let id = SystemRandom().bytes(16)
        let held = Held(login)
        pending[id] = Pending(binding: binding, ke1: ke1, ke2: ke2) { ke3 in held.finish(ke3) }
        return try reply(
            200, ["login_id": .bytes(id), "ke2": .bytes(ke2), "app": .string(app)], draft, nil)
    }

    package func expireLogins(_ count: Int) { loginsToExpire = count }

    private func finishLogin(
        _ draft: Draft, id: [UInt8], ke3: [UInt8], signature: [UInt8], mac: [UInt8]
    ) throws -> Response {
        let start = pending.removeValue(forKey: id)
        guard loginsToExpire == 0, let start else {
            loginsToExpire = max(0, loginsToExpire - 1)
            return try refuse("login-expired", draft)
        }
        guard let key = start.sessionKey(try KE3(ke3)) else {
            return try refuse("wrong-credentials", draft)
        }
        let keys = LoginKeys(sessionKey: key)
        let transcript = start.binding.finishTranscript(
            .login, loginID: id, ke1: start.ke1, ke2: start.ke2, ke3: ke3)
        let sum = keys.finish.authenticate((transcript + signature).span)
        let device = start.binding.device
        guard sum.indices.map({ sum[$0] }) == mac,
            device.signingKey.verify(signature.span, of: transcript.span) == .equal
        else { return try refuse("wrong-credentials", draft) }
        let session = try FakeSession(
            root: keys.root, device: device, account: start.binding.account.description, at: now)
        if var old = self.session {
            old.ended = old.ended ?? "replaced"
            former.append(old)
        }
        self.session = session
        return try reply(
            200,
            [
                "account": .string(start.binding.account.description),
                "session": .string(session.id.description),
                "token": .string(session.token(0).description), "epoch": 0,
                "expires": .integer(session.expires),
                "idle": .integer(now + 90 * 86_400), "slots": "single",
            ], draft, Credentials(keyID: KeyID(session.token(0)), key: session.key(of: 0)))
    }

    private func renew(
        _ draft: Draft, token text: String, attempt: [UInt8], mac: [UInt8], signature: [UInt8],
        nonce: [UInt8], isReport: Bool, numbers: JSONDocument
    ) throws -> Response {
        let sent = Array(text.utf8)
        if let token = SessionToken(sent.span), let old = former.first(where: { $0.id == token.id }) {
            return try reply(
                401,
                ["code": "session-ended", "reason": .string(old.ended ?? "replaced"), "at": .integer(now)],
                draft,
                nil)
        }
        guard var session, let token = SessionToken(sent.span), token.id == session.id,
            let time = numbers.root["time"], let seconds = numbers.integer(time, in: 0...Int.max),
            let count = numbers.root["counter"], let counter = numbers.integer(count, in: 1...(1 << 53))
        else { return try refuse("unknown-key", draft) }
        let transcript = RefreshTranscript(
            app: app, release: signer, token: token, attempt: attempt, time: Int64(seconds),
            counter: Int64(counter), nonce: nonce, purpose: isReport ? .reportReuse : .renew
        ).bytes
        // The key of an epoch that was left long ago is gone; then the device alone vouches for it.
        let epoch = token.epoch
        let known = session.epoch(named: KeyID(token))
        guard known.map({ session.authenticates(mac, transcript, under: $0) }) ?? true,
            session.device.signingKey.verify(signature.span, of: transcript.span) == .equal
        else { return try refuse("bad-signature", draft) }
        // Fresh, and each is taken once.
        guard abs(Int64(seconds) - now) <= 60 else {
            return try reply(401, ["code": "stale", "time": .integer(now)], draft, nil)
        }
        guard transcripts.insert(transcript).inserted else {
            return try replayed(transcript, of: session, answering: draft)
        }
        refreshes += 1
        if let reason = session.ended {
            return try reply(401, ["code": "session-ended", "reason": .string(reason)], draft, nil)
        }
        // Nobody but another holder of the vault comes to one of these.
        if isReport || (Int64(counter) == session.counter && session.counted != transcript) {
            return try endReused(draft)
        }
        guard Int64(counter) > session.counter else {
            return try replayed(transcript, of: session, answering: draft)
        }
        // To leave an epoch that was offered is its first use.
        session.use(epoch, at: now)
        guard epoch <= session.epoch else { return try refuse("unknown-key", draft) }
        session.count(Int64(counter), of: transcript)
        guard epoch == session.epoch else {
            guard epoch + 1 == session.epoch, attempt == session.attempt else { return try endReused(draft) }
            self.session = session
            return try replayed(transcript, of: session, answering: draft)
        }
        guard session.successor == nil || attempt == session.asking else { return try endReused(draft) }
        return try offer(attempt, of: session, token, draft)
    }

    private func endReused(_ draft: Draft) throws -> Response {
        session?.ended = "reused"
        return try reply(401, ["code": "session-ended", "reason": "reused"], draft, nil)
    }

    /// Says how far the session has come.
    private func replayed(
        _ transcript: [UInt8], of session: FakeSession, answering draft: Draft
    ) throws -> Response {
        let digest = SHA256.digest(transcript.span)
        return try reply(
            401,
            [
                "code": "replayed", "counter": .integer(session.counter),
                "epoch": .integer(Int64(session.epoch)),
                "transcript": .bytes(digest.indices.map { digest[$0] }),
            ], draft, nil)
    }

    private func offer(
        _ attempt: [UInt8], of current: FakeSession, _ token: SessionToken, _ draft: Draft
    ) throws -> Response {
        var session = current
        let epoch = session.epoch
        let successor = try session.offer(attempt, to: signer)
        self.session = session
        return try reply(
            200,
            [
                "token": .string(session.token(epoch + 1).description), "epoch": .integer(Int64(epoch + 1)),
                "ephemeral": .bytes(successor.ephemeral), "expires": .integer(now + FakeSession.lifetime),
                "idle": .integer(now + 90 * 86_400),
            ], draft, Credentials(keyID: KeyID(token), key: session.key(of: epoch)))
    }

    private func refuse(_ code: String, _ draft: Draft, _ signer: Credentials? = nil) throws -> Response {
        try reply(401, ["code": .string(code)], draft, signer)
    }

    /// Signed with `signer`, or with the authority's own key.
    private func reply(_ status: Int, _ body: JSONValue, _ draft: Draft, _ signer: Credentials?) throws
        -> Response
    {
        try reply(status, bytes: Array(body.text.utf8), draft, signer)
    }

    private func reply(_ status: Int, bytes: [UInt8], _ draft: Draft, _ signer: Credentials?) throws
        -> Response
    {
        guard let own = KeyID(MessageSignatures.authorityKeyID) else { throw Problem.broken }
        let fields = try MessageSignatures().sign(
            status: status, body: bytes, answering: draft.request(),
            as: signer ?? Credentials(keyID: own, key: ownKey), at: now)
        return Response(status: status, fields: fields ?? [], body: bytes)
    }
}

/// A login between its two halves, which is used once.
private final class Held {
    private var login: ServerLogin?

    package init(_ login: consuming ServerLogin) { self.login = consume login }

    package func finish(_ ke3: KE3) -> Secret? {
        guard let login = login.take() else { return nil }
        return try? login.finish(ke3)
    }
}

extension Device {
    fileprivate init?(json: JSON) {
        func point(_ name: String) -> P256Point? {
            json[name]?.string.flatMap { Base64.decode($0, as: .url) }.flatMap { P256Point($0) }
        }
        guard let signing = point("signing_key"), let agreement = point("agreement_key"),
            let kind = json["class"]?.string.flatMap(Device.Class.init),
            let name = json["name"]?.string.flatMap(Device.Name.init)
        else { return nil }
        self.init(signingKey: signing, agreementKey: agreement, kind: kind, name: name)
    }
}

extension JSONValue {
    /// Bytes as the routes encode them: base64url without padding.
    fileprivate static func bytes(_ bytes: [UInt8]) -> JSONValue {
        .string(Base64.encode(bytes.span, as: .url))
    }
}
