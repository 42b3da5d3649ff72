import CountersignWire
import Testing

@testable import CountersignLab

@Suite struct WeakenedTests {
    @Test(arguments: MACPlaceTests.requests) func oneFormHasNoSignature(_ request: RawRequest) throws {
        var request = request
        if !request.body.isEmpty, request.bodyText.contains("sign=") {
            request.fields["Content-Type"] = "application/x-www-form-urlencoded"
        }
        #expect(MACPlace(in: request) != nil)
        let bare = try #require(request.weakened.first).1
        #expect(MACPlace(in: bare) == nil)
    }

    @Test func namesOfAlgorithmsAndVersionsAreTradedForWeakerOnes() {
        let input = #"app=("@method");keyid="r_1";alg="hmac-sha256";tag="countersign""#
        let signed = RawRequest("GET", "/", fields: [("Signature-Input", input), ("Signature", "app=:AA==:")])
        let inputs = signed.weakened.compactMap { $0.1.fields["Signature-Input"] }
        #expect(inputs.contains { $0.contains(#"alg="none""#) && $0.contains(#"tag="countersign""#) })
        let query = RawRequest("GET", "/balance?auth_version=1.0&auth_signature=ab")
        #expect(query.weakened.contains { $0.1.target.contains("auth_version=2&") })
        let fields = RawRequest("POST", "/", fields: [("X-Auth-Version", "4")])
        #expect(fields.weakened.contains { $0.1.fields["X-Auth-Version"] == "3" })
    }

    @Test func aFormTurnsIntoAQuery() throws {
        var login = RawRequest("POST", "/login/login.php", fields: [("Host", "bank.test")])
        login.bodyForm = RawForm([.init("username", "a b"), .init("password", "p&q")])
        let get = try #require(login.asGET)
        #expect(get.method == "GET")
        #expect(get.body.isEmpty)
        #expect(get.queryForm["username"] == "a b")
        #expect(get.queryForm["password"] == "p&q")
        #expect(get.asGET == nil)
    }

    @Test func whatIsWeakerIsWeaker() {
        #expect(RowProfile.Scheme.ladder(.plainGet).weakerRungs.isEmpty)
        #expect(RowProfile.Scheme.ladder(.md5).weakerRungs == [.plainGet, .plainPost, .base64])
        #expect(RowProfile.Scheme.countersign.weakerRungs == RowProfile.LadderRung.allCases)
        #expect(RowProfile.Scheme.apiKey(.authV1).weakerSignatures.contains(.apiKey(.authV2)))
        #expect(!RowProfile.Scheme.apiKey(.authV1).weakerSignatures.contains(.apiKey(.sigV4)))
        #expect(RowProfile.Scheme.formMD5.weakerSignatures.isEmpty)
        #expect(RowProfile.Scheme.countersign.weakerSignatures.count == 5)
    }
}
