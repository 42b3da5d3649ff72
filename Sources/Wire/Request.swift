/// One HTTP request as received, parsed once by the engine and read by every later step.
///
/// Every part is a ``ByteRange`` of `head`, which keeps the request's own bytes: the target that was signed
/// is the target that is forwarded, to the byte. Field names are lower-cased by the parser; nothing else is
/// altered.
@usableFromInline package struct Request: Sendable {
    /// How the message says where its body ends. Source: RFC 9112 §6.
    package enum Framing: Sendable, Equatable {
        case none
        case length(Int)
        case chunked
    }

    @usableFromInline package struct Field: BitwiseCopyable, Sendable {
        @usableFromInline package var name: ByteRange
        /// Without the optional white space around it.
        @usableFromInline package var value: ByteRange
        /// Which one it is, once ``Request/identifyFields()`` has looked.
        @usableFromInline package fileprivate(set) var known = FieldName.other
        package fileprivate(set) var traits = FieldTraits.isUnidentified

        package init(name: ByteRange, value: ByteRange) {
            self.name = name
            self.value = value
        }

        /// For a parser that has looked up the name.
        package init(name: ByteRange, value: ByteRange, identity: FieldIdentity) {
            self.name = name
            self.value = value
            known = identity.name
            traits = identity.traits
        }
    }

    /// How much of the body is available when the request is judged.
    @usableFromInline package enum BodyState: Sendable {
        /// `body` is all of it.
        case whole
        /// A body was announced and will be buffered; it has not been read yet, and `body` is empty.
        case awaited
        /// The body is too large to buffer, and streams behind the gate; `body` is empty.
        case streaming
    }

    /// `http` or `https`, as the client reached the listener.
    package enum Transport: Sendable { case plain, tls }

    @usableFromInline package var head: [UInt8] = []
    package var method = ByteRange.empty
    /// The request target in origin form (`/path?query`), or `*`: what is forwarded. Of a target in absolute
    /// form it is the part behind the authority.
    package var target = ByteRange.empty
    /// The authority of a target that was sent in absolute form, right before `target`; else empty.
    package var absoluteAuthority = ByteRange.empty
    package var path = ByteRange.empty
    /// What follows the first `?`, without it; nil when the target has none.
    package var query: ByteRange?
    /// The `Host` field's value (HTTP/2: `:authority`), as received.
    package var authority = ByteRange.empty
    @usableFromInline package var fields: [Field] = []
    /// Which known fields are among them.
    package private(set) var names = FieldNames()
    /// Whether a backend may parse the body as a form, by any Content-Type: what follows the media type does
    /// not matter, and some backends end the media type at a comma too.
    package private(set) var hasFormType = false
    /// The same for `multipart/form-data`; ``Multipart/Boundary`` parses its boundary.
    package private(set) var hasMultipartType = false
    /// The fields that `Connection` removes at this hop. Set when a head is parsed.
    package var hopByHopFields = FieldMask()
    package var framing = Framing.none
    package var transport = Transport.tls
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    package var minorVersion = 1
    /// The whole body if it was read before the gate judges the request; empty otherwise.
    package var body: [UInt8] = []
    @usableFromInline package var bodyState = BodyState.whole
    /// Whether `body` is complete. Setting this to false means that the body is too large to buffer, and
    /// streams.
    @inlinable package var isBodyWhole: Bool {
        get { bodyState == .whole }
        set { bodyState = newValue ? .whole : .streaming }
    }

    package init() {}

    /// The whole request target as it was sent. Source: RFC 9421 §2.2.5.
    package var requestTarget: ByteRange {
        absoluteAuthority.isEmpty ? target : ByteRange(from: Int(method.end) + 1, to: Int(target.end))
    }

    /// Looks up the known names of `fields`. The parser calls this once, after it has written `fields` with
    /// names in lower case.
    package mutating func identifyFields() {
        names = FieldNames()
        hasFormType = false
        hasMultipartType = false
        for index in fields.indices {
            let identity = FieldIdentity(exactly: head.span.extracting(fields[index].name.range))
            fields[index].known = identity.name
            fields[index].traits = identity.traits
            names.insert(identity.name)
            if identity.name == .contentType { readType(fields[index].value) }
        }
    }

    /// Sets fields that the parser has identified. Of a known name other than `Content-Type` there may be
    /// several.
    package mutating func setFields(_ fields: Span<Field>, named names: FieldNames) {
        self.fields.replaceAll(with: fields)
        self.names = names
        hasFormType = false
        hasMultipartType = false
        guard names.contains(.contentType) else { return }
        for index in 0..<fields.count where fields[index].known == .contentType {
            readType(fields[index].value)
        }
    }

    private mutating func readType(_ value: ByteRange) {
        let range = value.range
        if Request.isMediaType("application/x-www-form-urlencoded", of: head.span.extracting(range)) {
            hasFormType = true
        }
        if Request.isMediaType("multipart/form-data", of: head.span.extracting(range)) {
            hasMultipartType = true
        }
    }

    private static func isMediaType(_ name: StaticString, of type: Span<UInt8>) -> Bool {
        let length = name.utf8CodeUnitCount
        guard type.count >= length, type.extracting(0..<length).matchesWithoutCase(name) else { return false }
        guard type.count > length else { return true }
        let next = type[length]
        return next <= 0x20 || next == UInt8(ascii: ";") || next == UInt8(ascii: ",")
    }

    /// The one field of that name; nil when it is absent, and when there are several.
    package func value(of name: FieldName) -> ByteRange? {
        guard names.contains(name) else { return nil }
        var found: ByteRange?
        for field in fields where field.known == name {
            if found != nil { return nil }
            found = field.value
        }
        return found
    }

    /// The one field of that lower-case name; nil when it is absent, and when there are several.
    @inlinable package func value(of name: StaticString) -> ByteRange? {
        var found: ByteRange?
        for field in fields where matches(field.name, text: name) {
            if found != nil { return nil }
            found = field.value
        }
        return found
    }

    @inlinable package func count(of name: StaticString) -> Int {
        var count = 0
        for field in fields where matches(field.name, text: name) { count += 1 }
        return count
    }

    /// Whether the bytes at `slice` are exactly `text`.
    @inlinable package func matches(_ slice: ByteRange, text: StaticString) -> Bool {
        guard slice.count == text.utf8CodeUnitCount else { return false }
        return head.span.extracting(slice.range).matches(text)
    }

    /// The bytes at `slice` as text, for people and logs; ill-formed UTF-8 is replaced.
    package func text(_ slice: ByteRange) -> String { String(decoding: head[slice.range], as: UTF8.self) }
}

/// A response as a signature covers it. Source: RFC 9421 §2.2.9.
package struct Response: Sendable {
    package var status: Int
    /// Its fields and body, stored like a request's so that the same parsers read them; parts that only
    /// requests have are empty.
    package var message: Request

    package init(status: Int, fields: [Draft.Field], body: [UInt8]) {
        self.status = status
        var head = HeadWriter(fieldCount: fields.count)
        for field in fields { head.addField(field.name, value: field.value) }
        message = Request()
        message.take(head)
        message.body = body
    }
}

/// The authority of a request in the form that signatures cover. Source: RFC 9421 §2.2.3, RFC 9110 §4.2.3.
package enum URIAuthority {
    /// `host` without `port`, where it ends in that. Letters keep their case.
    @_lifetime(copy host)
    package static func normalised(_ host: Span<UInt8>, without port: StaticString) -> Span<UInt8> {
        let count = host.count - port.utf8CodeUnitCount
        guard count > 0 else { return host }
        for index in 0..<port.utf8CodeUnitCount where host[count + index] != port.utf8Start[index] {
            return host
        }
        return host.extracting(0..<count)
    }
}

extension Request {
    /// How a client reached the trusted proxy that this request comes from, as that says it in
    /// `X-Forwarded-Proto`; how the proxy reached us where it says nothing else.
    package var proxiedTransport: Transport {
        guard let value = value(of: "x-forwarded-proto") else { return transport }
        let text = head.span.extracting(value.range)
        if text.matchesWithoutCase("https") { return .tls }
        return text.matchesWithoutCase("http") ? .plain : transport
    }
}

extension Request.Transport {
    /// The transport's default port, with its colon.
    package var defaultPortSuffix: StaticString {
        switch self {
        case .plain: ":80"
        case .tls: ":443"
        }
    }
}
