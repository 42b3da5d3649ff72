import CountersignWire
import Testing

@testable import CountersignLab

@Suite struct WeakenedTests {
    @Test(arguments: MACPlaceTests.requests) func oneFormHasNoSignature(_ request: RawRequest) throws {
        var request = request
        if !request.body.isEmpty, request.bodyText.contains("sign=") {
            request.fields["Content-Type"] = "application/x-www-form-urlencoded"
        }
        #expect(MACLocation(in: request) != nil)
        let bare = try #require(request.weakenedVariants.first).1
        #expect(MACLocation(in: bare) == nil)
    }

    @Test func namesOfAlgorithmsAndVersionsAreTradedForWeakerOnes() {
        let input = #"app=("@method");keyid="r_1";alg="hmac-sha256";tag="countersign""#
        let signed = RawRequest(
            method: "GET", target: "/", fields: [("Signature-Input", input), ("Signature", "app=:AA==:")])
        let inputs = signed.weakenedVariants.compactMap { $0.1.fields["Signature-Input"] }
        #expect(inputs.contains { $0.contains(#"alg="none""#) && $0.contains(#"tag="countersign""#) })
        let query = RawRequest(method: "GET", target: "/balance?auth_version=1.0&auth_signature=ab")
        #expect(query.weakenedVariants.contains { $0.1.target.contains("auth_version=2&") })
        let fields = RawRequest(method: "POST", target: "/", fields: [("X-Auth-Version", "4")])
        #expect(fields.weakenedVariants.contains { $0.1.fields["X-Auth-Version"] == "3" })
    }

    @Test func aFormTurnsIntoAQuery() throws {
        var login = RawRequest(method: "POST", target: "/login/login.php", fields: [("Host", "bank.test")])
        login.bodyForm = RawForm([
            .init(name: "username", value: "a b"), .init(name: "password", value: "p&q"),
        ])
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
