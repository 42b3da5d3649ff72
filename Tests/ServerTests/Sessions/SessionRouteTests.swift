import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignServer

@Suite struct SessionRouteTests {
    private let prefix = "/countersign/v1"

    /// A proxy in front sends requests of many callers over one connection.
    @Test("each request of a connection goes on with its own caller's lines, and with its own event")
    func sharedConnection() async throws {
        let server = try SessionServer()
        let release = Credentials(keyID: server.release.id, key: server.release.key)
        let (alice, bob) = (try await server.signIn("alice"), try await server.signIn("bob"))
        let callers: [(signer: Credentials, account: String?)] = [
            (alice.credentials, "name:alice"), (release, nil), (bob.credentials, "name:bob"),
            (bob.credentials, "name:bob"), (alice.credentials, "name:alice"), (release, nil), (release, nil),
        ]
        var attachment: AnyObject?
        var events: Set<String> = []
        for caller in callers {
            let request = try server.signed("GET", "/a", as: caller.signer)
            let told = try await server.send(request, over: &attachment)
            let fields = try #require(told["headers"])
            #expect(fields["countersign-account"]?.string == caller.account)
            #expect((fields["countersign-session"] == nil) == (caller.account == nil))
            #expect(fields["countersign-release"]?.string == "\(server.release.id)")
            #expect(fields["countersign-client"]?.string == "192.0.2.1")
            let event = try #require(fields["countersign-event"]?.string)
            #expect(event.utf8.count == 36)
            events.insert(event)
        }
        #expect(events.count == callers.count)
    }

    @Test("what a session is told of itself and of the others")
    func reading() async throws {
        let server = try SessionServer()
        let (own, other) = (try await server.signIn("alice"), try await server.signIn("alice"))
        let stranger = try await server.signIn("bob")
        let session = try await server.call("GET", "\(prefix)/session", as: own.credentials)
        #expect(session.status == 200)
        #expect(session["account"]?.string == "alice" && session["session"]?.string == "\(own.token.id)")
        #expect(
            session["device"]?["class"]?.string == "phone" && session["device"]?["name"]?.string == "a phone")
        #expect(session.number("expires") == Int(server.clock.now) + 7_200)
        #expect(session.number("idle") == Int(server.clock.now) + 90 * 86_400)

        let all = try await server.call("GET", "\(prefix)/sessions", as: own.credentials)
        let list = try #require(all["sessions"]?.elements)
        #expect(Set(list.compactMap { $0["session"]?.string }) == ["\(own.token.id)", "\(other.token.id)"])
        let current = list.filter { $0["current"] != nil }.compactMap { $0["session"]?.string }
        #expect(current == ["\(own.token.id)"])
        #expect(all.body.bytes.span.text.contains("\(stranger.token.id)") == false)
    }

    @Test("one ends another of its own account, and none of another's")
    func revoking() async throws {
        let server = try SessionServer()
        let (own, other) = (try await server.signIn("alice"), try await server.signIn("alice"))
        let stranger = try await server.signIn("bob")
        let denied = try await server.call(
            "DELETE", "\(prefix)/sessions/\(stranger.token.id)", as: own.credentials)
        #expect(denied.status == 404)
        #expect(try await server.call("GET", "/a", as: stranger.credentials).status == 200)
        let done = try await server.call(
            "DELETE", "\(prefix)/sessions/\(other.token.id)", as: own.credentials)
        #expect(done.status == 200)
        let ended = try await server.call("GET", "/a", as: other.credentials)
        #expect(ended.status == 401 && ended["code"]?.string == "session-ended")
        #expect(ended["reason"]?.string == "revoked" && ended.number("at") == Int(server.clock.now))
        let again = try await server.call(
            "DELETE", "\(prefix)/sessions/\(other.token.id)", as: own.credentials)
        #expect(again.status == 404)
    }

    @Test("the device of a session that another one ends is forgotten; one's own stays, also after a logout")
    func revokedDevices() async throws {
        let server = try SessionServer()
        let (own, other) = (try await server.signIn("alice"), try await server.signIn("alice"))
        func known() throws -> Int {
            let app = try #require(AppName("demo"))
            let account = try #require(
                try server.deployment.store.account(AccountName(normalizing: "alice"), of: app))
            return try server.deployment.store.knownDevices(of: account.number).count
        }
        #expect(try known() == 2)
        let done = try await server.call(
            "DELETE", "\(prefix)/sessions/\(other.token.id)", as: own.credentials)
        #expect(try done.status == 200 && known() == 1)
        let itself = try await server.call(
            "DELETE", "\(prefix)/sessions/\(own.token.id)", as: own.credentials)
        #expect(try itself.status == 200 && known() == 1)
        let again = try await server.signIn("alice")
        #expect(try await server.call("POST", "\(prefix)/logout", as: again.credentials).status == 200)
        #expect(try known() == 2)
    }

    @Test("logout ends one's own, and its answer is still signed under it")
    func logout() async throws {
        let server = try SessionServer()
        let own = try await server.signIn("alice")
        let told = try await server.call("POST", "\(prefix)/logout", as: own.credentials)
        #expect(told.status == 200)
        let verify = ResponseVerifier([own.credentials.keyID: own.credentials.key])
        #expect(try verify(told.response, to: told.request) == .holds(own.credentials.keyID))
        let after = try await server.call("GET", "\(prefix)/session", as: own.credentials)
        #expect(after["reason"]?.string == "signed-out")
        #expect(try verify(after.response, to: after.request) == .holds(own.credentials.keyID))
    }

    @Test("a token that has expired still ends its session, and opens nothing")
    func lateLogOut() async throws {
        let server = try SessionServer()
        var own = try await server.signIn("alice")
        let release = Credentials(keyID: server.release.id, key: server.release.key)
        let left = own.credentials
        let told = try await server.call(
            "POST", "\(prefix)/token", as: release, own.refresh(at: server.clock.now))
        let ephemeral = try #require(told["ephemeral"]?.string.flatMap { Base64.decode($0, as: .url) })
        let agreed = try own.agreement.sharedSecret(with: #require(P256Point(ephemeral)))
        own.root = own.root.next(agreed: agreed)
        own.token.epoch = 1
        #expect(try await server.call("GET", "/a", as: own.credentials).status == 200)
        server.clock.now += 7_200
        for path in ["/a", "\(prefix)/session", "\(prefix)/sessions"] {
            let refused = try await server.call("GET", path, as: own.credentials)
            #expect(refused["code"]?.string == "token-expired", "\(path)")
        }
        // So does the key that was left long ago, while it is kept: to end its session is all that it can do.
        let another = try await server.signIn("alice")
        #expect(try await server.call("GET", "/a", as: left)["code"]?.string == "token-expired")
        #expect(try await server.call("POST", "\(prefix)/logout", as: left).status == 200)
        let after = try await server.call("GET", "\(prefix)/session", as: own.credentials)
        #expect(after["reason"]?.string == "signed-out")
        server.clock.now += 7_200
        #expect(try await server.call("POST", "\(prefix)/logout", as: another.credentials).status == 200)
    }

    @Test(
        "a refresh over the wire: its answer is signed under the key that is left, and bound to its request")
    func refresh() async throws {
        let server = try SessionServer()
        var own = try await server.signIn("alice")
        let release = Credentials(keyID: server.release.id, key: server.release.key)
        let attempt = SystemRandom().bytes(RefreshTranscript.attemptCount)
        let told = try await server.call(
            "POST", "\(prefix)/token", as: release, own.refresh(at: server.clock.now, attempt: attempt))
        #expect(
            told.status == 200 && told["token"]?.string == "s_\(own.token.id).1" && told.number("epoch") == 1)
        let verify = ResponseVerifier([own.credentials.keyID: own.credentials.key])
        #expect(try verify(told.response, to: told.request) == .holds(own.credentials.keyID))

        // The response to another copy of the same request, in place of this one's.
        server.clock.now += 1
        let second = try await server.call(
            "POST", "\(prefix)/token", as: release,
            own.refresh(at: server.clock.now, counter: 3, attempt: attempt))
        // A copy that was held is told how far the session has come.
        let held = try await server.call(
            "POST", "\(prefix)/token", as: release,
            own.refresh(at: server.clock.now, counter: 2, attempt: attempt))
        #expect(held["code"]?.string == "replayed" && held.number("counter") == 3)
        #expect(held.number("epoch") == 0 && held["transcript"]?.string?.count == 43)
        #expect(second["ephemeral"]?.string == told["ephemeral"]?.string)
        #expect(throws: Refusal.self) { try verify(second.response, to: told.request) }
        // A response with the same content, signed with a key from the app.
        let forger = ResponseVerifier([own.credentials.keyID: release.key])
        #expect(throws: Refusal.self) { try forger(told.response, to: told.request) }

        let ephemeral = try #require(told["ephemeral"]?.string.flatMap { Base64.decode($0, as: .url) })
        let agreed = try own.agreement.sharedSecret(with: #require(P256Point(ephemeral)))
        own.root = own.root.next(agreed: agreed)
        own.token.epoch = 1
        #expect(try await server.call("GET", "/a", as: own.credentials).status == 200)
        let session = try await server.call("GET", "\(prefix)/session", as: own.credentials)
        #expect(session.number("epoch") == 1)
    }

    @Test("the first request under a renewed key is told when that runs out, and so are those after it")
    func expiryAtFirstUse() async throws {
        let server = try SessionServer()
        var own = try await server.signIn("alice")
        let release = Credentials(keyID: server.release.id, key: server.release.key)
        let told = try await server.call(
            "POST", "\(prefix)/token", as: release, own.refresh(at: server.clock.now))
        let ephemeral = try #require(told["ephemeral"]?.string.flatMap { Base64.decode($0, as: .url) })
        let agreed = try own.agreement.sharedSecret(with: #require(P256Point(ephemeral)))
        own.root = own.root.next(agreed: agreed)
        own.token.epoch = 1
        server.clock.now += 50
        let expected = Int(server.clock.now) + 7_200
        for _ in 0..<3 {
            let session = try await server.call("GET", "\(prefix)/session", as: own.credentials)
            #expect(session.number("epoch") == 1 && session.number("expires") == expected)
            server.clock.now += 10
        }
    }

    @Test("of many sessions the newest are listed, and one's own")
    func many() async throws {
        let server = try SessionServer()
        let own = try await server.signIn("alice")
        var others: [String] = []
        func signInOthers(_ count: Int) async throws {
            for _ in 0..<count {
                server.clock.now += 1
                others.append("\(try await server.signIn("alice").token.id)")
            }
        }
        func list() async throws -> (ids: [String], isCut: Bool) {
            let all = try await server.call("GET", "\(prefix)/sessions", as: own.credentials)
            let ids = try #require(all["sessions"]?.elements).compactMap { $0["session"]?.string }
            guard case .bool(let isCut)? = all["more"]?.content else {
                throw OperationalError(.failed, message: "`more` is missing")
            }
            return (ids, isCut)
        }
        try await signInOthers(SessionRoutes.mostListed - 1)
        let whole = try await list()
        #expect(whole.ids == ["\(own.token.id)"] + others && !whole.isCut)
        try await signInOthers(5)
        let cut = try await list()
        #expect(cut.ids == ["\(own.token.id)"] + others.suffix(SessionRoutes.mostListed) && cut.isCut)
        let newest = try #require(others.last)
        let gone = try await server.call("DELETE", "\(prefix)/sessions/\(newest)", as: own.credentials)
        #expect(gone.status == 200)
        let rest = try await list()
        #expect(
            rest.ids == ["\(own.token.id)"] + others.dropLast().suffix(SessionRoutes.mostListed) && rest.isCut
        )
    }

    @Test("a session's own key opens no route that is a release's, nor the other way round")
    func admission() async throws {
        let server = try SessionServer([])
        for (path, level) in [("/", RouteRule.Level.session), ("/public", .signed)] {
            let rule = try #require(RouteRule(prefix: Array(path.utf8), level: level))
            try server.deployment.setRoute(rule, of: server.release.appName())
        }
        let own = try await server.signIn("alice")
        let release = Credentials(keyID: server.release.id, key: server.release.key)
        let told = try await server.call("GET", "\(prefix)/session", as: release)
        #expect(told["code"]?.string == "session-required" && told["reason"] == nil)
        #expect(try await server.call("GET", "/public/news", as: release).status == 200)
        #expect(try await server.call("GET", "/private", as: release)["code"]?.string == "session-required")
        #expect(try await server.call("GET", "/private", as: own.credentials).status == 200)
    }

    @Test("the backend is told who it is, and never the token")
    func identity() async throws {
        let server = try SessionServer(["slots=unlimited", "assertion=on"])
        // The device says that its keys are in hardware; nobody vouches for it, and the assertion does not.
        let own = try await server.signIn("zürich 42%", claiming: .tpm)
        let told = try await server.call("GET", "/a", as: own.credentials)
        let fields = try #require(told["headers"])
        #expect(fields["countersign-account"]?.string == "name:z%C3%BCrich%2042%25")
        #expect(fields["countersign-session"]?.string == "\(own.token.id)")
        let assertion = try #require(fields["countersign-assertion"]?.string).split(separator: ".")
        let claims = try JSONReader.read(#require(Base64.decode(String(assertion[1]), as: .url)))
        #expect(
            claims.root["sub"]?.string == "name:z%C3%BCrich%2042%25"
                && claims.root["sid"]?.string == "\(own.token.id)")
        let loginTime = try #require(claims.root["auth_time"])
        #expect(claims.integer(loginTime, in: 0...Int.max).map(Int64.init) == server.clock.now)
        #expect(claims.root["amr"]?.elements?.map(\.string) == ["pwd", "swk"])
        let release = Credentials(keyID: server.release.id, key: server.release.key)
        let bare = try await server.call("GET", "/a", as: release)
        #expect(
            bare["headers"]?["countersign-account"] == nil && bare["headers"]?["countersign-session"] == nil)
    }

    @Test(
        "what is not a refresh is told so, and nothing else",
        arguments: ["{}", "[]", "{\"token\":\"s_x\"}", "{"])
    func malformed(_ body: String) throws {
        #expect(throws: Refusal.self) { try TokenRoutes.TokenExchange(Array(body.utf8)) }
    }

    @Test("a refresh without a counter or a nonce is malformed", arguments: ["counter", "nonce"])
    func unnumbered(_ missing: String) async throws {
        let server = try SessionServer()
        let own = try await server.signIn("alice")
        let release = Credentials(keyID: server.release.id, key: server.release.key)
        let whole = try own.refresh(at: server.clock.now)
        guard case .object(let members) = whole else { return }
        let rest = JSONValue.object(members.filter { $0.name != missing })
        let refused = try await server.call("POST", "\(prefix)/token", as: release, rest)
        #expect(refused.status == 400 && refused["code"]?.string == "malformed")
        #expect(try await server.call("POST", "\(prefix)/token", as: release, whole).status == 200)
    }
}
