import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

/// What may happen to a message on its way without harm to its signature, and what may not. The signature
/// covers `@method`, `@path`, `@authority` and two fields. Source: RFC 9421, appendix B.4.
@Suite struct TransformationTests {
    @Test("harmless changes", arguments: harmless) func still(_ change: Change) throws {
        #expect(try holds(change))
    }

    @Test("harmful changes", arguments: harmful) func noMore(_ change: Change) throws {
        #expect(try !holds(change))
    }

    struct Change: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var apply: @Sendable (inout Draft) -> Void

        init(_ name: String, _ apply: @escaping @Sendable (inout Draft) -> Void) {
            testDescription = name
            self.apply = apply
        }
    }

    private static let harmless = [
        Change("nothing") { _ in },
        Change("a field that is not covered is added") {
            $0.fields.append(Draft.Field(name: "Accept-Language", value: "en"))
        },
        Change("a query is added, which is not covered") { $0.target += Array("?a=b".utf8) },
        Change("fields change places") { $0.fields.swapAt(0, 1) },
        Change("the lines of a field become one") {
            $0.fields.removeAll { $0.name == "Accept" }
            $0.fields.append(Draft.Field(name: "Accept", value: "application/json, */*"))
        },
    ]

    private static let harmful = [
        Change("another method") { $0.method = "POST" },
        Change("another host") { $0.authority = "example.org" },
        Change("another path") { $0.target = Array("/Demo".utf8) },
        Change("a covered field is changed") {
            $0.fields[0].value = Array("Fri, 15 Jul 2022 14:24:56 GMT".utf8)
        },
        Change("a covered field is gone") { $0.fields.removeAll { $0.name == "Accept" } },
        Change("the lines of a field change places") { $0.fields.swapAt(2, 3) },
        Change("a covered field comes once more") {
            $0.fields.append(Draft.Field(name: "Accept", value: "text/html"))
        },
    ]

    private func holds(_ change: Change) throws -> Bool {
        let key = SigningKey(
            try PrivateKey(ed25519Seed: Secret(copying: [UInt8](repeating: 7, count: 32).span)))
        var draft = Draft(method: "GET", target: Array("/demo".utf8), authority: "example.com")
        draft.fields = [
            Draft.Field(name: "Date", value: "Fri, 15 Jul 2022 14:24:55 GMT"),
            Draft.Field(name: "Origin", value: "https://example.com"),
            Draft.Field(name: "Accept", value: "application/json"), Draft.Field(name: "Accept", value: "*/*"),
        ]
        draft.setField(
            "Signature-Input",
            to: #"transform=("@method" "@path" "@authority" "accept" "date");created=1618884473;keyid="k""#)
        draft.setField("Signature", to: "transform=::")
        let signature = try key.sign(base(of: draft.request()).text)
        draft.setField("Signature", to: "transform=:\(Base64.encode(signature.span, as: .standard)):")
        change.apply(&draft)
        do {
            let workspace = try base(of: draft.request())
            return key.publicKey?.verify(signature.span, of: workspace.text.bytes.span) == .equal
        } catch is Refusal {
            return false
        }
    }

    private func base(of request: Request) throws -> Workspace {
        var workspace = Workspace()
        let claim = try MessageSignatures().claim(in: request, workspace: &workspace)
        guard let claim else { throw Refusal(.unsigned) }
        try MessageSignatures().writeStringToSign(for: claim, of: request, into: &workspace)
        return workspace
    }
}
