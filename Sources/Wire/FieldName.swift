/// The fields that this project reads. The parser identifies a head's names once; every later look-up
/// compares one byte instead of a text.
@usableFromInline package enum FieldName: UInt8, BitwiseCopyable, Sendable {
    /// One that only a signature or the backend may know.
    case other
    case accept, authorization, connection
    case contentDigest, contentEncoding, contentLength, contentType
    case countersignRelease, countersignTicket, date, expect, host, idempotencyKey
    case signature, signatureInput, traceparent, tracestate, transferEncoding, userAgent
    case xAmzContentSHA256, xAmzDate
    case xAuthClientID, xAuthSignature, xAuthTimestamp, xAuthVersion
    case xRequestID

    /// Of a name in lower case, byte for byte.
    package init(_ name: borrowing Span<UInt8>) { self = FieldIdentity(exactly: name).name }
}

/// What follows from a field's name alone. A parser of heads looks each name up once.
package struct FieldIdentity: BitwiseCopyable, Sendable {
    package let name: FieldName
    package let traits: FieldTraits

    /// Whatever the case of the name's letters.
    package init(caseless name: borrowing Span<UInt8>) {
        self = FieldIdentity.find(name, ignoring: FieldIdentity.letterCase)
    }

    /// Of a name in lower case; none with an upper-case letter is known.
    package init(exactly name: borrowing Span<UInt8>) { self = FieldIdentity.find(name, ignoring: 0) }

    @inline(__always) private init(_ name: FieldName, traits: FieldTraits = []) {
        self.name = name
        self.traits = traits
    }

    /// The length leaves most names after one comparison of one or two words.
    @inline(__always) private static func find(
        _ name: borrowing Span<UInt8>, ignoring letterCase: UInt64
    ) -> FieldIdentity {
        let name = name.bytes
        @inline(__always) func equals(_ text: StaticString) -> Bool {
            FieldIdentity.equals(name, text: text, ignoring: letterCase)
        }
        switch name.byteCount {
        case 2: if equals("te") { return FieldIdentity(.other, traits: .endsAtHop) }
        case 4:
            if equals("host") { return FieldIdentity(.host, traits: .isHarmless) }
            if equals("date") { return FieldIdentity(.date) }
        case 6:
            if equals("accept") { return FieldIdentity(.accept, traits: .isHarmless) }
            if equals("expect") { return FieldIdentity(.expect, traits: .endsAtHop) }
        case 7: if equals("trailer") || equals("upgrade") { return FieldIdentity(.other, traits: .endsAtHop) }
        case 9: if equals("signature") { return FieldIdentity(.signature) }
        case 10:
            if equals("user-agent") { return FieldIdentity(.userAgent, traits: .isHarmless) }
            if equals("tracestate") { return FieldIdentity(.tracestate, traits: .isHarmless) }
            if equals("connection") { return FieldIdentity(.connection, traits: .endsAtHop) }
            if equals("x-amz-date") { return FieldIdentity(.xAmzDate) }
            if equals("keep-alive") { return FieldIdentity(.other, traits: .endsAtHop) }
        case 11: if equals("traceparent") { return FieldIdentity(.traceparent, traits: .isHarmless) }
        case 12:
            if equals("content-type") { return FieldIdentity(.contentType) }
            if equals("x-request-id") { return FieldIdentity(.xRequestID, traits: .isHarmless) }
        case 13: if equals("authorization") { return FieldIdentity(.authorization) }
        case 14:
            if equals("content-length") { return FieldIdentity(.contentLength, traits: .endsAtHop) }
            if equals("content-digest") { return FieldIdentity(.contentDigest) }
            if equals("x-auth-version") { return FieldIdentity(.xAuthVersion) }
            if equals("http2-settings") { return FieldIdentity(.other, traits: .endsAtHop) }
        case 15:
            if equals("signature-input") { return FieldIdentity(.signatureInput) }
            if equals("idempotency-key") { return FieldIdentity(.idempotencyKey) }
        case 16:
            if equals("content-encoding") { return FieldIdentity(.contentEncoding) }
            if equals("x-auth-client-id") { return FieldIdentity(.xAuthClientID) }
            if equals("x-auth-signature") { return FieldIdentity(.xAuthSignature) }
            if equals("x-auth-timestamp") { return FieldIdentity(.xAuthTimestamp) }
            if equals("proxy-connection") { return FieldIdentity(.other, traits: .endsAtHop) }
        case 17:
            if equals("transfer-encoding") { return FieldIdentity(.transferEncoding, traits: .endsAtHop) }
        case 18:
            if equals("countersign-ticket") { return FieldIdentity(.countersignTicket, traits: .isReserved) }
            if equals("proxy-authenticate") { return FieldIdentity(.other, traits: .endsAtHop) }
        case 19:
            if equals("countersign-release") {
                return FieldIdentity(.countersignRelease, traits: .isReserved)
            }
            if equals("proxy-authorization") { return FieldIdentity(.other, traits: .endsAtHop) }
        case 20: if equals("x-amz-content-sha256") { return FieldIdentity(.xAmzContentSHA256) }
        default: break
        }
        return FieldIdentity(.other, traits: familyTraits(of: name, ignoring: letterCase))
    }

    /// The traits of names with a certain beginning.
    @inline(__always) private static func familyTraits(
        of name: RawSpan, ignoring letterCase: UInt64
    ) -> FieldTraits {
        if name.byteCount >= 7, equals(name.extracting(first: 7), text: "accept-", ignoring: letterCase) {
            return .isHarmless
        }
        let length = 11
        guard name.byteCount >= length,
            equals(name.extracting(first: length), text: "countersign", ignoring: letterCase)
        else { return [] }
        guard name.byteCount > length else { return .isReserved }
        // Some backends replace every character that is not a letter or digit by `_`.
        let next = name.unsafeLoad(fromByteOffset: length, as: UInt8.self)
        return ASCII.isLetter(next) || ASCII.isDigit(next) ? [] : .isReserved
    }

    /// The bit that tells the cases of a letter, in each byte of a word.
    private static var letterCase: UInt64 { 0x2020_2020_2020_2020 }

    /// Whether a name equals `text`, which is as long, at least two bytes, and has only lower-case letters,
    /// digits and hyphens. The last word overlaps the one before it. With a constant `text` this compiles to
    /// one comparison of two constants.
    @inline(__always) private static func equals(
        _ name: RawSpan, text: StaticString, ignoring letterCase: UInt64
    ) -> Bool {
        let count = text.utf8CodeUnitCount
        let expected = UnsafeRawPointer(text.utf8Start)
        @inline(__always) func differs<Word: FixedWidthInteger & BitwiseCopyable>(
            at offset: Int, as _: Word.Type
        ) -> Word {
            let word = expected.loadUnaligned(fromByteOffset: offset, as: Word.self)
            let found = name.unsafeLoadUnaligned(fromByteOffset: offset, as: Word.self)
            // Bit 6 is set in the letters, and in no hyphen or digit.
            let letters = word >> 1 & Word(truncatingIfNeeded: letterCase)
            return (found | letters) ^ word
        }
        if count < 4 {
            return differs(at: 0, as: UInt16.self) | differs(at: count - 2, as: UInt16.self) == 0
        }
        if count < 8 {
            return differs(at: 0, as: UInt32.self) | differs(at: count - 4, as: UInt32.self) == 0
        }
        var difference = differs(at: count - 8, as: UInt64.self)
        var offset = 0
        while offset + 8 < count {
            difference |= differs(at: offset, as: UInt64.self)
            offset += 8
        }
        return difference == 0
    }
}

/// What the forwarding of a field depends on.
@usableFromInline package struct FieldTraits: OptionSet, BitwiseCopyable, Sendable {
    @usableFromInline package let rawValue: UInt8

    @inlinable package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The name has not been looked up. Such a field is not forwarded.
    @inlinable package static var isUnidentified: FieldTraits { FieldTraits(rawValue: 1) }
    /// Ends at this hop. Source: RFC 9110 §7.6.1.
    @inlinable package static var endsAtHop: FieldTraits { FieldTraits(rawValue: 2) }
    /// `Countersign-…`, or a backend may read it as such. Only the gateway may write these fields.
    @inlinable package static var isReserved: FieldTraits { FieldTraits(rawValue: 4) }
    /// No backend should act on it, so it may be forwarded although no signature covers it.
    @inlinable package static var isHarmless: FieldTraits { FieldTraits(rawValue: 8) }

    /// Whether the field is not forwarded, in either direction.
    @inlinable package var staysHere: Bool { rawValue & 0b111 != 0 }
}

/// The set of these fields that a head has.
@usableFromInline package struct FieldNames: Sendable, Equatable {
    @usableFromInline var bits: UInt64 = 0

    @inlinable package init() {}

    package init(_ names: FieldName...) { for name in names { insert(name) } }

    package func isDisjoint(with other: FieldNames) -> Bool { bits & other.bits == 0 }

    @inlinable package func contains(_ name: FieldName) -> Bool { bits & 1 &<< UInt64(name.rawValue) != 0 }

    @inlinable package mutating func insert(_ name: FieldName) { bits |= 1 &<< UInt64(name.rawValue) }
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

    @inlinable package mutating func formIntersection(_ other: FieldMask) {
        low &= other.low
        high &= other.high
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

    /// The first index in the mask from `start` on; ``limit`` if there is none.
    @inlinable package func firstIndex(from start: Int) -> Int {
        // A shift by the word's width or more leaves no bit.
        let below = low & UInt64.max << UInt64(start)
        if below != 0 { return below.trailingZeroBitCount }
        let above = high & UInt64.max << UInt64(max(start - 64, 0))
        return 64 + above.trailingZeroBitCount
    }
}
