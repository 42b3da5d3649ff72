import CountersignSeal
import CountersignWire

/// What one sigv4 request needs between claim and verdict. Kept from one request to the next, as `Workspace`
/// is.
struct SigV4Buffers: ~Copyable, SchemeBuffers {
    /// The signature's own words, decoded where they came in a query.
    var words = ByteBuffer(capacity: 1024)
    var authorization = SigV4Authorization()
    /// The signed fields, in their order.
    var names: [SignedField] = []
    var canonical = ByteBuffer(capacity: 4096)
    /// The query's parameters, escaped as the spelling has them.
    var escaped = ByteBuffer(capacity: 1024)
    var parameters: [SortedParameter] = []
    /// The segments of the path that count.
    var segments: [ByteRange] = []
    var facts = CanonicalFormFacts()

    init() {
        names.reserveCapacity(32)
        parameters.reserveCapacity(64)
        segments.reserveCapacity(64)
    }
}

extension SigV4Buffers {
    /// Nil if it is not a key id.
    var keyID: KeyID? { KeyID(words.span.extracting(authorization.keyID.range)) }

    /// Source: AWS Signature Version 4, "Create a string to sign".
    func appendStringToSign(to text: inout ByteBuffer) {
        let digest = SHA256.digest(canonical.span)
        text.append("AWS4-HMAC-SHA256\n")
        text.append(words.span.extracting(authorization.timestamp.range))
        text.append(UInt8(ascii: "\n"))
        text.append(words.span.extracting(authorization.scope.range))
        text.append(UInt8(ascii: "\n"))
        Hex.append(digest.span, to: &text)
    }
}

extension Workspace {
    /// sigv4's canonical request, whose digest the string to sign ends in; empty if none was written.
    package var canonicalRequest: String { existingPart(SigV4Buffers.self)?.buffers.canonical.text ?? "" }
}

/// What a signature says of itself. All slices are of ``SigV4Buffers/words``.
struct SigV4Authorization: Sendable {
    enum Form: Sendable { case header, query }

    /// What the last line of the canonical request is.
    enum Payload: Sendable, Equatable {
        /// `x-amz-content-sha256`, a slice of the head.
        case field(ByteRange)
        /// The body's own SHA-256.
        case body
        /// `UNSIGNED-PAYLOAD`, without a field that says so.
        case unsigned
    }

    var form = Form.header
    var signature = MAC()
    var keyID = ByteRange.empty
    /// `yyyymmdd/region/service/aws4_request`.
    var scope = ByteRange.empty
    var service = ByteRange.empty
    /// `yyyyMMddTHHmmssZ`.
    var timestamp = ByteRange.empty
    /// The same in whole Unix seconds.
    var seconds: Int64 = 0
    /// `X-Amz-Expires` of a presigned URL, in seconds.
    var lifetime: Int64?
    /// The names of the signed fields, joined by `;`.
    var signedFields = ByteRange.empty
    var payload = Payload.body
}

/// A field that is signed: its name in ``SigV4Buffers/words``, and which lines of the head bear it.
struct SignedField: BitwiseCopyable {
    var name: ByteRange
    /// The index of the first of them.
    var firstLine = 0
    var lines = 0

    init(name: ByteRange) { self.name = name }
}

/// What came to light while the standard spelling was written.
struct CanonicalFormFacts: BitwiseCopyable {
    var isEscapedAsStandard = true
    var isInOrder = true
    var hasBareNames = false
    var isPathChanged = false
    /// Whether the path that was written last is the sent one without some of its segments.
    var hasLostSegments = false
}
