/// One HTTP request as the wire had it, parsed once by the engine and read by everyone after.
///
/// Every part is a ``Slice`` of `head`, which keeps the request's own bytes: the target that was signed is the target
/// that is forwarded, to the byte. Field names are lower-cased by the parser; nothing else is altered.
@usableFromInline package struct Request: Sendable {
    /// How the message says where its body ends. Source: RFC 9112 §6.
    package enum Framing: Sendable, Equatable {
        case none
        case length(Int)
        case chunked
    }

    @usableFromInline package struct Field: BitwiseCopyable, Sendable {
        @usableFromInline package var name: Slice
        /// Without the optional white space around it.
        @usableFromInline package var value: Slice
        /// Which one it is, once ``Request/tellFieldsApart()`` has looked.
        @usableFromInline package fileprivate(set) var known = FieldName.other

        package init(name: Slice, value: Slice) {
            self.name = name
            self.value = value
        }
    }

    /// How much of the body there is when the request is looked at.
    package enum BodyState: Sendable {
        /// `body` is all of it.
        case whole
        /// One was announced, and will be held; it has not been read yet, and `body` is empty.
        case awaited
        /// It is too large to hold, and streams behind the gate; `body` is empty.
        case streaming
    }

    /// `http` or `https`, as the client reached the listener.
    package enum Transport: Sendable { case plain, tls }

    @usableFromInline package var head: [UInt8] = []
    package var method = Slice.empty
    /// The request target in origin form (`/path?query`), or `*`: what is forwarded. Of a target in absolute form it is
    /// the part behind the authority.
    package var target = Slice.empty
    /// The authority of a target that was sent in absolute form, right before `target`; else empty.
    package var absoluteAuthority = Slice.empty
    package var path = Slice.empty
    /// What follows the first `?`, without it; nil when the target has none.
    package var query: Slice?
    /// The `Host` field's value (HTTP/2: `:authority`), as received.
    package var authority = Slice.empty
    @usableFromInline package var fields: [Field] = []
    /// Which of the fields that we know are among them.
    package private(set) var names = FieldNames()
    /// Whether a backend may take the body for a form, by any Content-Type there is: what follows the media type does not
    /// matter, and backends that look for its end stop at a comma, too.
    package private(set) var hasFormType = false
    /// The same for `multipart/form-data`, whose boundary is ``Multipart/Boundary``'s to read.
    package private(set) var hasMultipartType = false
    /// The fields that `Connection` takes off at this hop. Set where a head is read.
    package var endingHere = FieldMask()
    package var framing = Framing.none
    package var transport = Transport.tls
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    package var minorVersion = 1
    /// The whole body where it was read before the gate was asked; empty otherwise.
    package var body: [UInt8] = []
    package var bodyState = BodyState.whole
    /// Whether `body` is all of it. Setting it to false says that the body is too large to hold, and streams.
    package var isBodyWhole: Bool {
        get { bodyState == .whole }
        set { bodyState = newValue ? .whole : .streaming }
    }

    package init() {}

    /// The whole request target as it was sent. Source: RFC 9421 §2.2.5.
    package var requestTarget: Slice {
        absoluteAuthority.isEmpty ? target : Slice(Int(method.end) + 1, Int(target.end))
    }

    /// Looks up which fields these are; whoever writes `fields`, with names in lower case, calls it once.
    package mutating func tellFieldsApart() {
        names = FieldNames()
        hasFormType = false
        hasMultipartType = false
        for index in fields.indices {
            let name = FieldName(head.span.extracting(fields[index].name.range))
            fields[index].known = name
            names.insert(name)
            guard name == .contentType else { continue }
            let type = fields[index].value.range
            if Request.isMediaType("application/x-www-form-urlencoded", of: head.span.extracting(type)) {
                hasFormType = true
            }
            if Request.isMediaType("multipart/form-data", of: head.span.extracting(type)) { hasMultipartType = true }
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
    package func value(of name: FieldName) -> Slice? {
        guard names.contains(name) else { return nil }
        var found: Slice?
        for field in fields where field.known == name {
            if found != nil { return nil }
            found = field.value
        }
        return found
    }

    /// The one field of that lower-case name; nil when it is absent, and when there are several.
    @inlinable package func value(of name: StaticString) -> Slice? {
        var found: Slice?
        for field in fields where matches(field.name, name) {
            if found != nil { return nil }
            found = field.value
        }
        return found
    }

    @inlinable package func count(of name: StaticString) -> Int {
        var count = 0
        for field in fields where matches(field.name, name) { count += 1 }
        return count
    }

    /// Whether the bytes at `slice` are exactly `text`.
    @inlinable package func matches(_ slice: Slice, _ text: StaticString) -> Bool {
        guard slice.count == text.utf8CodeUnitCount else { return false }
        return head.span.extracting(slice.range).matches(text)
    }

    /// The bytes at `slice` as text, for people and logs; ill-formed UTF-8 is replaced.
    package func text(_ slice: Slice) -> String { String(decoding: head[slice.range], as: UTF8.self) }
}
