import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

@testable import CountersignAuthority

/// Parameters with which a client names its user, under names that one parser confuses with others.
@Suite struct StatedUserTests {
    @Test("under form-md5 only userId and token themselves may be read as such")
    func signedNames() async throws {
        let scene = try BearerScene(["legacy-session=authority"])
        let token = try await scene.open().token.text
        for name in [
            "+userId", "%20userId", "++userId", "userId+", "userId[", "userId[]", "userId[x]",
            "userId%5Bx%5D", "userId.", "userId.x", "userid", "USERID", "[userId]", "%09userId", "userId%0A",
            "+token", "token[]", "token.", "Token",
        ] {
            #expect(try await scene.judge("\(name)=7&token=\(token)").code == .malformed, "\(name)")
            #expect(try await scene.judge("\(name)=").code == .malformed, "\(name), empty and alone")
        }
        for form in ["a=1;userId=7", "a=1;+token=x", "a;userId[]=7"] {
            #expect(try await scene.judge("\(form)&token=\(token)").code == .malformed, "\(form)")
        }
        #expect(try await scene.judge("userId=42;7&token=\(token)").code == .sessionEnded)
        for name in [
            "user_id", "userIds", "tokens", "token_type", "my.userId", "userId2", "x+userId", "a%3BuserId",
        ] {
            #expect(try await scene.judge("\(name)=7&token=\(token)") == .success("id:42"), "\(name)")
        }
    }

    @Test("beside a signed form the query has neither, under any reading")
    func unsignedNames() async throws {
        let scene = try BearerScene(["legacy-session=authority"])
        let token = try await scene.open().token.text
        for query in [
            "userId=42", "token=x", "%75serId=7", "%20userId=7", "+userId=7", "userId%00=7", "userId%00x=7",
            "userId%=7", "%zzuserId=7", "%zz=7", "userId[]=7", "userId%5b%5d=7", "USERID=7", "token.x=1",
            "a=1;userId=7", "a=1&userId",
        ] {
            #expect(
                try await scene.judge("token=\(token)", query: "?\(query)").code == .malformed, "\(query)")
        }
        for query in ["page=2", "a=100%", "a=userId", "users=1&tokens=2"] {
            #expect(
                try await scene.judge("token=\(token)", query: "?\(query)") == .success("id:42"), "\(query)")
        }
    }

    @Test("under the other old schemes too, in the query, in a form and in the JSON that is signed")
    func otherSchemes() async throws {
        let scene = try BearerScene([
            "legacy-session=authority", "schemes=form-md5,auth-v1,auth-v2,auth-v4,sigv4",
        ])
        try scene.addReleases()
        let field = "Bearer \(try await scene.open().token.text)"
        for scheme in [SchemeName.authV1, .authV2, .authV4] {
            for (id, code) in [("userId=42", nil), ("userId=7", .sessionEnded), ("userid=42", .malformed)]
                as [(String, Refusal.Code?)]
            {
                let inQuery = try scene.request(scheme, target: "/a?\(id)", authorization: field)
                #expect(await scene.judge(inQuery).code == code, "\(scheme), \(id)")
                guard scheme != .authV4 else { continue }
                let inForm = try scene.request(scheme, target: "/\(id)", form: id, authorization: field)
                #expect(await scene.judge(inForm).code == code, "\(scheme), form of \(id)")
            }
            #expect(
                try await scene.judge(scene.request(scheme, target: "/a?userId=42")).code == .sessionEnded)
            #expect(try await scene.judge(scene.request(scheme, target: "/a?userId=&x=1")) == .success(nil))
        }
        for (json, code) in [
            (#"{"userId":42,"a":1}"#, nil), (#"{"userId":"42"}"#, nil), (#"{"userId":null}"#, nil),
            (#"{"userId":7}"#, .sessionEnded), (#"{"user\u0049d":7}"#, .sessionEnded),
            (#"{"UserId":42}"#, .malformed), (#"{"userId":[42]}"#, .sessionEnded),
        ] as [(String, Refusal.Code?)] {
            let request = try scene.request(.authV4, target: "/a", json: json, authorization: field)
            #expect(await scene.judge(request).code == code, "\(json)")
        }
    }

    @Test("where a scheme can sign the field that bears a token, it must")
    func presigned() async throws {
        let scene = try BearerScene([
            "legacy-session=authority", "schemes=form-md5,auth-v1,auth-v2,auth-v4,sigv4",
        ])
        try scene.addReleases()
        let field = "Bearer \(try await scene.open().token.text)"
        #expect(await scene.judge(try scene.presigned("/a", authorization: nil)) == .success(nil))
        #expect(await scene.judge(try scene.presigned("/b", authorization: field)).code == .badSignature)
    }
}

extension BearerScene {
    fileprivate func addReleases() throws {
        for scheme in [SchemeName.authV1, .authV2, .authV4, .sigV4] {
            var old = try draft(base.app, id: "r-\(scheme.rawValue)", version: "0.8", scheme: scheme)
            old.platform = try #require(Platform("android"))
            _ = try base.deployment.addRelease(old, at: 6)
        }
    }

    fileprivate func request(
        _ scheme: SchemeName, target: String, form: String? = nil, json: String? = nil,
        authorization: String? = nil
    ) throws -> Request {
        let method = form == nil && json == nil ? "GET" : "POST"
        var draft = Draft(method: method, target: Array(target.utf8), authority: SessionScene.authority)
        if let form { draft.set("Content-Type", "application/x-www-form-urlencoded", body: form) }
        if let json { draft.set("Content-Type", "application/json", body: json) }
        if let authorization { draft.setField("Authorization", to: authorization) }
        let signer = try #require(SchemeRegistry.standard.scheme(named: scheme))
        try signer.sign(&draft, as: credentials(scheme), at: base.now, nonce: "")
        return draft.request()
    }

    fileprivate func presigned(_ target: String, authorization: String?) throws -> Request {
        var draft = Draft(method: "GET", target: Array(target.utf8), authority: SessionScene.authority)
        try SigV4().presign(&draft, as: credentials(.sigV4), at: base.now, lifetime: 60)
        if let authorization { draft.setField("Authorization", to: authorization) }
        return draft.request()
    }

    private func credentials(_ scheme: SchemeName) throws -> Credentials {
        let key = try base.release("r-\(scheme.rawValue)")
        return Credentials(keyID: key.id, key: key.key)
    }
}

extension Draft {
    fileprivate mutating func set(_ name: String, _ value: String, body: String) {
        setField(name, to: value)
        self.body = Array(body.utf8)
    }
}

extension Result where Success == String?, Failure == Refusal {
    var code: Refusal.Code? {
        guard case .failure(let refusal) = self else { return nil }
        return refusal.code
    }
}
