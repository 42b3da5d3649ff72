import CountersignSchemes
import CountersignWire

extension SelfTestCheck {
    /// The ambiguities of the scheme, which its own type lists.
    static func ambiguity(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        subject.scheme.selfTest?.ambiguityChecks ?? []
    }

    /// Two parameters `a=1&b=2` signed, one `a` of the value `1&b=2` sent.
    static let ampersandInValue = SelfTestCheck(
        "ampersand-in-value", family: .tamper,
        sent: "two signed parameters, sent as one with an escaped `&` in its value"
    ) { (inquiry) throws(OperationalError) in
        var draft = inquiry.draft(.bare)
        draft.target += Array("&selftest_a=1&selftest_b=2".utf8)
        draft = try inquiry.sign(draft)
        try draft.replaceInTarget("selftest_a=1&selftest_b=2", by: "selftest_a=1%26selftest_b%3D2")
        return inquiry.result(
            of: try inquiry.submit(draft), weakness: "the scheme does not escape what it signs")
    }
}

extension SelfTestClient {
    /// Adds something before the signed one and after it: parsers differ in which of two they use.
    func expectEitherRefused(
        shape: RequestShape = .withBody,
        before: (inout Draft) throws(OperationalError) -> Void,
        or behind: (inout Draft) throws(OperationalError) -> Void
    ) throws(OperationalError) -> SelfTestResult {
        let first = try expectRefusal(as: [.malformed, .badSignature], shape: shape, change: before)
        guard first.verdict == .held else { return first }
        return try expectRefusal(as: [.malformed, .badSignature], shape: shape, change: behind)
    }
}
