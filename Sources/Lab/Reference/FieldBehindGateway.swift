import CountersignWire

/// A backend half way to our gateway: newer versions of its app sign, and it knows their users by
/// `Countersign-Account`; older ones come by open routes, and bear its own tokens. Where both stand in a request the
/// gateway's word counts.
/// Source: docs/protocol.md, "To the upstream" and "Routes of the backend".
struct FieldBehindGateway: FieldScheme {
    private let own: FieldPasswords

    init(_ database: FieldDatabase) { own = FieldPasswords(database) }

    func kept(_ password: String) throws(StageFault) -> String? { try own.kept(password) }

    func page(_ request: RawRequest) throws(StageFault) -> RawResponse? { try own.page(request) }

    func caller(_ request: RawRequest) throws(StageFault) -> FieldCaller {
        guard let account = request.fields["countersign-account"], !account.isEmpty else {
            return try own.caller(request)
        }
        return .known(name: account, FieldParameters(request))
    }
}
