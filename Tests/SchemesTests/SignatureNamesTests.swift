// The one scan by which form-md5, auth-v1 and auth-v2 are recognised: it finds the names that count however
// they are escaped, looks at a bounded number of pairs, and costs the same whatever a stranger sends.
import CountersignWire
import Testing

@testable import CountersignSchemes

@Suite struct SignatureNamesTests {
    @Test("names that count, and what looks like them", arguments: namesTable)
    func names(_ row: (text: String, md5: Bool, auth: SchemeName?)) {
        let text = Array(row.text.utf8)
        let names = SignatureParameterNames(in: text.span)
        #expect(names.hasFormMD5Signature == row.md5)
        #expect((names.hasAuthSignature ? names.authScheme : nil) == row.auth)
    }

    private static let namesTable: [(text: String, md5: Bool, auth: SchemeName?)] = [
        ("", false, nil), ("a", false, nil), ("app_id", false, nil), ("sign=1", false, nil),
        ("app_id&sign", true, nil), ("x=1&app_id=&rand=", true, nil), ("timestamp=&app_id=1", true, nil),
        ("app_id=1&SIGN=1", false, nil), ("app_idx=1&sign=1", false, nil), ("app_id=1&signs=1", false, nil),
        ("%61pp_id=1&s%69gn=1", true, nil), ("%61%70%70%5f%69%64&%73%69%67%6E", true, nil),
        ("app_id%00=1&sign=1", false, nil), ("app_id=1&sig%6=1", false, nil),
        ("app%5Fid=1&ran%64", true, nil),
        // A pair that no form reader takes ends the search for form-md5, not that for the others.
        ("&app_id=1&sign=1", false, nil), ("app_id=1&=2&sign=1", false, nil),
        ("app_id=1&&sign=1", false, nil), ("auth_signature=1", false, .authV1),
        ("&&auth_signature=1", false, .authV1),
        ("%61%75%74%68%5f%73%69%67%6e%61%74%75%72%65=1", false, .authV1), ("auth_key=1", false, nil),
        ("auth_key=1&auth_timestamp=2", false, .authV1), ("auth_client_id=1&auth_version=2", false, .authV2),
        ("auth_client_id=1&auth_version=%32", false, .authV2),
        ("auth_client_id=1&auth_version=2x", false, .authV1),
        ("auth_client_id=1&auth_version", false, .authV1),
        ("auth_key=1&auth_version=2&auth_version=2", false, .authV1), ("auth_signaturex=1", false, nil),
        ("auth_signature_=1", false, nil), ("auth_signatur=1", false, nil),
        ("auth_signature", false, .authV1), ("app_id=1&sign=1&auth_signature=1", true, .authV1),
    ]

    @Test func looksAtABoundedNumberOfPairs() {
        let few = String(repeating: "a&", count: SignatureParameterNames.mostPairs - 2)
        let inside = Array((few + "app_id=1&sign=1").utf8)
        #expect(SignatureParameterNames(in: inside.span).hasFormMD5Signature)
        let behind = Array((few + "app_id=1&x&sign=1&auth_signature=1").utf8)
        let names = SignatureParameterNames(in: behind.span)
        #expect(!names.hasFormMD5Signature && !names.hasAuthSignature)
        // What was not looked at is not vouched for.
        #expect(!names.hasNoFormMD5Names)
        #expect(SignatureParameterNames(in: Array("a&b=1".utf8).span).hasNoFormMD5Names)
        #expect(!SignatureParameterNames(in: Array("a&b=1&".utf8).span).hasNoFormMD5Names)
    }

    @Test func tracesOfARequestAgreeWithEachScheme() throws {
        for (target, body) in [
            ("/", "app_id=1&sign=1"), ("/?auth_key=1&auth_version=2", ""),
            ("/?app_id=1&rand=1", "auth_signature=1"),
            ("/?a=1", "b=2"), ("/?X-Amz-Signature=1", "app_id=1&sign=1"),
        ] {
            var draft = Draft(method: "POST", target: Array(target.utf8), authority: "h.example")
            draft.setField("Content-Type", to: "application/x-www-form-urlencoded")
            draft.body = Array(body.utf8)
            for isWhole in [true, false] {
                var request = draft.request()
                request.isBodyWhole = isWhole
                let found = SchemeRegistry.standard.schemes.map { $0.detect(in: request) }
                let traces = SchemeRegistry.standard.detectSchemes(in: request)
                #expect(traces.hasSignature == found.contains { $0 != .absent })
                #expect(traces.hasOnlyMessageSignatures == found.dropFirst().allSatisfy { $0 == .absent })
                let first = found.firstIndex(of: .present) ?? found.firstIndex(of: .inUnreadBody)
                #expect(
                    traces.dialect == (first.map { SchemeRegistry.standard.schemes[$0].dialect } ?? .problem))
            }
        }
    }
}
