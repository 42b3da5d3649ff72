import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Whether an answer is the authority's own, and to which request.
struct AuthorityVerifier {
    enum Finding: Equatable, CustomStringConvertible {
        case holds
        case unsigned
        case wrong(String)

        var description: String {
            switch self {
            case .holds: "signed by the authority"
            case .unsigned: "not signed"
            case .wrong(let detail): "wrongly signed: \(detail)"
            }
        }
    }

    private let verify: VerifyAnswer

    /// Nil where the operator did not give the key.
    init?(_ subject: Subject) throws(Fault) {
        guard let bytes = subject.authorityKey else { return nil }
        guard let key = try? PublicKey(ed25519: bytes), let id = KeyID(MessageSignatures.authorityKeyID) else {
            throw Fault(.usage, "the authority key: expected an Ed25519 public key")
        }
        verify = VerifyAnswer([id: SigningKey(key)])
    }

    func look(at response: RawResponse, to request: Request, bound binding: MessageSignatures.Binding = .request)
        -> Finding
    {
        let fields = response.fields.lines.map { Draft.Field($0.name, $0.value) }
        let response = Response(status: response.status, fields: fields, body: response.body)
        do throws(Refusal) {
            return try verify(response, to: request, bound: binding) == .unsigned ? .unsigned : .holds
        } catch {
            return .wrong(error.detail.isEmpty ? error.code.name : error.detail)
        }
    }
}
