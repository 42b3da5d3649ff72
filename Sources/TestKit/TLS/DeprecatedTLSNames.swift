// Former public names and argument labels of this folder, which Apple's platforms do not have. The next
// version removes them. Where a trailing closure fits both forms, `@_disfavoredOverload` selects the present
// one.

/// The former name of ``IssuedCertificate``.
@available(*, deprecated, renamed: "IssuedCertificate")
public typealias Issued = IssuedCertificate

extension Staple {
    /// The former name of ``CertificateStatus``.
    @available(*, deprecated, renamed: "CertificateStatus")
    public typealias Standing = CertificateStatus
}

extension TestServer {
    /// The former name of ``Counters``.
    @available(*, deprecated, renamed: "Counters")
    public typealias Tally = Counters

    /// The former name of ``Credentials``.
    @available(*, deprecated, renamed: "Credentials")
    public typealias Identity = Credentials

    /// The former form of ``init(_:serve:)``.
    @available(*, deprecated, renamed: "init(_:serve:)")
    @_disfavoredOverload
    public convenience init(
        _ security: Security, _ serve: @escaping @Sendable (TestConnection) -> Void
    ) throws {
        try self.init(security, serve: serve)
    }
}

extension TestConnection {
    /// The former form of ``answer(_:body:fields:)``.
    @available(*, deprecated, renamed: "answer(_:body:fields:)")
    @discardableResult
    public func answer(_ status: String, _ body: String, fields: String = "") -> Bool {
        answer(status, body: body, fields: fields)
    }
}
