/// The fields that this project reads. The parser identifies a head's names once; every later look-up
/// compares one byte instead of a text.
@usableFromInline package enum FieldName: UInt8, BitwiseCopyable, Sendable {
    /// One that only a signature or the backend may know.
    case other
    case accept, authorization, connection
    case contentDigest, contentEncoding, contentLength, contentType
    case countersignRelease, countersignTicket, date, expect, host, idempotencyKey
    case signature, signatureInput, traceparent, transferEncoding, userAgent
    case xAmzContentSHA256, xAmzDate
    case xAuthClientID, xAuthSignature, xAuthTimestamp, xAuthVersion

    /// `name` in lower case. The length alone leaves most names after one comparison.
    package init(_ name: borrowing Span<UInt8>) {
        self = .other
        switch name.count {
        case 4:
            if name.matches("host") { self = .host } else if name.matches("date") { self = .date }
        case 6:
            if name.matches("accept") { self = .accept } else if name.matches("expect") { self = .expect }
        case 9: if name.matches("signature") { self = .signature }
        case 10:
            if name.matches("user-agent") { self = .userAgent }
            if name.matches("connection") { self = .connection }
            if name.matches("x-amz-date") { self = .xAmzDate }
        case 11: if name.matches("traceparent") { self = .traceparent }
        case 12:
            if name.matches("content-type") { self = .contentType }
        case 13: if name.matches("authorization") { self = .authorization }
        case 14:
            if name.matches("content-length") { self = .contentLength }
            if name.matches("content-digest") { self = .contentDigest }
            if name.matches("x-auth-version") { self = .xAuthVersion }
        case 15:
            if name.matches("idempotency-key") { self = .idempotencyKey }
            if name.matches("signature-input") { self = .signatureInput }
        case 16:
            if name.matches("content-encoding") { self = .contentEncoding }
            if name.matches("x-auth-client-id") { self = .xAuthClientID }
            if name.matches("x-auth-signature") { self = .xAuthSignature }
            if name.matches("x-auth-timestamp") { self = .xAuthTimestamp }
        case 17: if name.matches("transfer-encoding") { self = .transferEncoding }
        case 18: if name.matches("countersign-ticket") { self = .countersignTicket }
        case 19: if name.matches("countersign-release") { self = .countersignRelease }
        case 20: if name.matches("x-amz-content-sha256") { self = .xAmzContentSHA256 }
        default: break
        }
    }
}

/// The set of these fields that a head has.
package struct FieldNames: Sendable, Equatable {
    private var bits: UInt64 = 0

    package init() {}

    package init(_ names: FieldName...) { for name in names { insert(name) } }

    package func isDisjoint(with other: FieldNames) -> Bool { bits & other.bits == 0 }

    @inline(__always)
    package func contains(_ name: FieldName) -> Bool { bits & 1 << UInt64(name.rawValue) != 0 }

    mutating func insert(_ name: FieldName) { bits |= 1 << UInt64(name.rawValue) }
}

/// Some of a message's first 128 fields, by index into `Request.fields`. The standard library's `UInt128`
/// needs iOS 18.
@usableFromInline package struct FieldMask: Sendable, Equatable, ExpressibleByArrayLiteral {
    /// As many fields as a mask can name.
    package static let limit = 128

    @usableFromInline var low: UInt64
    @usableFromInline var high: UInt64

    @inlinable init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    /// No field.
    @inlinable package init() { self.init(low: 0, high: 0) }

    /// That field alone; none where a mask cannot name it.
    @inlinable package init(_ index: Int) {
        let bit: UInt64 = 1 << UInt64(truncatingIfNeeded: index & 63)
        self.init(low: index >> 6 == 0 ? bit : 0, high: index >> 6 == 1 ? bit : 0)
    }

    @inlinable package init(arrayLiteral indices: Int...) {
        self.init()
        for index in indices { insert(index) }
    }

    /// Every field that a mask can name.
    @inlinable package static var all: FieldMask { FieldMask(low: .max, high: .max) }

    @inlinable package var isEmpty: Bool { low | high == 0 }

    @inlinable package func contains(_ index: Int) -> Bool { intersects(FieldMask(index)) }

    @inlinable package mutating func insert(_ index: Int) { formUnion(FieldMask(index)) }

    @inlinable package mutating func remove(_ index: Int) { subtract(FieldMask(index)) }

    @inlinable package mutating func formUnion(_ other: FieldMask) {
        low |= other.low
        high |= other.high
    }

    @inlinable package mutating func subtract(_ other: FieldMask) {
        low &= ~other.low
        high &= ~other.high
    }

    @inlinable package func subtracting(_ other: FieldMask) -> FieldMask {
        FieldMask(low: low & ~other.low, high: high & ~other.high)
    }

    @inlinable package func intersects(_ other: FieldMask) -> Bool {
        low & other.low | high & other.high != 0
    }
}
