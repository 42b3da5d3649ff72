import CountersignWire

/// The one signature of a request that is meant for us, out of all that its Signature-Input names.
/// Source: RFC 9421 §4.1.
struct SignatureInput: BitwiseCopyable {
    /// All slices are of `Request.head`; strings without their quotes.
    var label = ByteRange.empty
    /// By index into `Workspace.components`.
    var components = ByteRange.empty
    /// The value of `@signature-params`.
    var parameters = ByteRange.empty
    var created: Int64?
    var expires: Int64?
    var nonce: ByteRange?
    var keyID: ByteRange?
    var algorithm: ByteRange?
    var tag: ByteRange?
    /// Whether other signatures qualify as well.
    var isOneOfSeveral = false
    /// Why the gate cannot accept this signature; relevant only if it is chosen, because signatures for other
    /// receivers may have such a form.
    var flaw: Flaw?

    /// The limits on components of one signature and on signatures of one request.
    static let most = (components: 64, signatures: 8)
    /// The limit on components for which a whole field or query is parsed, because parsing precedes
    /// authentication.
    static let mostParsed = 16
    /// Bytes of the query that are read for all `@query-param` components together.
    static let mostQueryBytes = 128 << 10

    enum Flaw: UInt8, BitwiseCopyable {
        case spacing, number, boolean, kind, repeated, components

        var expected: String {
            switch self {
            case .spacing: "canonical form: one space between components, none elsewhere"
            case .number: "canonical form: an integer without leading zeros"
            case .boolean: "canonical form: a true parameter without a value"
            case .kind: "created and expires to be integers, nonce, keyid, alg and tag strings"
            case .repeated: "each parameter once"
            case .components: "at most 64 components"
            }
        }
    }

    /// Which of several signatures is read.
    enum SelectionRule {
        /// The one with our tag; without one, the first that has no tag.
        case byTag
        case labelled(String)
        /// The one with that tag; one without a tag is not it.
        case tagged(StaticString)
    }

    static func read(from request: Request, workspace: inout Workspace, rule: SelectionRule) throws(Refusal) {
        let part = workspace.part(SignatureInputBuffers.self)
        part.buffers.components.removeAll(keepingCapacity: true)
        var choice = CandidateSelection()
        // Beyond the limit nothing is read: `made` refuses it.
        for field in request.fields where field.known == .signatureInput && choice.isWithinLimit {
            var reader = StructuredField(request.head.span.extracting(field.value.range))
            do throws(ParseError) {
                while choice.isWithinLimit, let label = try reader.nextMember() {
                    var input = try member(from: &reader, at: field.value.start, part: part)
                    input.label = label.offset(by: field.value.start)
                    switch rule {
                    case .byTag:
                        choice.consider(
                            input, isOurs: input.tag.map { request.matches($0, text: "countersign") })
                    case .labelled(let label):
                        choice.consider(
                            input, isOurs: request.head[input.label.range].elementsEqual(label.utf8))
                    case .tagged(let tag):
                        choice.consider(
                            input, isOurs: input.tag.map { request.matches($0, text: tag) } ?? false)
                    }
                }
            } catch {
                throw Refusal(error, in: "Signature-Input")
            }
        }
        part.buffers.input = try choice.selected(by: rule)
    }

    /// Reads the signature with our tag; false where there is none.
    static func readTagged(from message: Request, workspace: inout Workspace) throws(Refusal) -> Bool {
        guard message.names.contains(.signatureInput) else { return false }
        do throws(Refusal) {
            try read(from: message, workspace: &workspace, rule: .byTag)
        } catch {
            if error.code == .unsigned { return false }
            throw error
        }
        return workspace.part(SignatureInputBuffers.self).buffers.input.tag != nil
    }

    /// Which of several signatures is meant for us.
    private struct CandidateSelection {
        private var tagged: SignatureInput?
        private var untagged: SignatureInput?
        private var count = (all: 0, tagged: 0, untagged: 0)

        var isWithinLimit: Bool { count.all <= most.signatures }

        /// `isOurs` is nil for a signature without a tag.
        mutating func consider(_ input: SignatureInput, isOurs: Bool?) {
            count.all += 1
            switch isOurs {
            case true?:
                tagged = input
                count.tagged += 1
            case false?: break
            case nil:
                if untagged == nil { untagged = input }
                count.untagged += 1
            }
        }

        func selected(by rule: SelectionRule) throws(Refusal) -> SignatureInput {
            guard isWithinLimit else { throw Refusal(.malformed, detail: "more than 8 signatures") }
            guard count.tagged <= 1 else { throw Refusal(.malformed, detail: "two signatures \(rule.words)") }
            guard var input = tagged ?? untagged else {
                throw Refusal(.unsigned, detail: "no signature in Signature-Input \(rule.words)")
            }
            input.isOneOfSeveral = count.tagged == 0 && count.untagged > 1
            if let flaw = input.flaw {
                throw Refusal(.malformed, detail: "Signature-Input: expected \(flaw.expected)")
            }
            return input
        }
    }

    /// An inner list of component identifiers, and its parameters. `base` is where the reader's text begins
    /// in the head.
    ///
    /// The signature covers the canonical form. Signers send that form; any other form is noted as a flaw
    /// instead of being serialized again, where a second serializer could introduce an error.
    private static func member(
        from reader: inout StructuredField, at base: UInt32, part: SchemePartOf<SignatureInputBuffers>
    ) throws(ParseError) -> SignatureInput {
        var input = SignatureInput()
        guard reader.takeEquals() else { throw reader.error("expected \"=(\": a list of components") }
        let start = reader.offset
        let firstComponent = part.buffers.components.count
        if !part.buffers.takeKnownList(from: &reader, at: base) {
            try readList(from: &reader, at: base, input: &input, part: part)
            if input.flaw == nil {
                part.buffers.keepList(of: reader, from: start, at: base, components: firstComponent)
            }
        }
        while let (key, value) = try parameter(from: &reader, input: &input) {
            input.setParameter(key, value: value, of: reader, at: base)
        }
        input.components = ByteRange(from: firstComponent, to: part.buffers.components.count)
        if input.components.count > most.components { input.note(.components) }
        input.parameters = ByteRange(from: start, to: reader.offset).offset(by: base)
        return input
    }

    /// The inner list alone, from its parenthesis on.
    private static func readList(
        from reader: inout StructuredField, at base: UInt32, input: inout SignatureInput,
        part: SchemePartOf<SignatureInputBuffers>
    ) throws(ParseError) {
        guard reader.openList() else { throw reader.error("expected \"(\": a list of components") }
        var isFirst = true
        while true {
            let before = reader.offset
            let wasFirst = isFirst
            let isItem = try reader.nextInList(first: &isFirst)
            let spaces = reader.offset - before - (isItem ? 0 : 1)
            if spaces != (isItem && !wasFirst ? 1 : 0) { input.note(.spacing) }
            guard isItem else { break }
            part.buffers.components.append(try component(from: &reader, at: base, input: &input))
        }
    }

    private static func component(
        from reader: inout StructuredField, at base: UInt32, input: inout SignatureInput
    ) throws(ParseError) -> Component {
        let start = reader.offset
        let name = try reader.string()
        var component = Component(name: name, text: reader.bytes.extracting(name.range))
        while let (key, value) = try parameter(from: &reader, input: &input) {
            component.addParameter(reader.bytes.extracting(key.range), value: value, at: base)
        }
        component.name = name.offset(by: base)
        component.identifier = ByteRange(from: start, to: reader.offset).offset(by: base)
        return component
    }

    /// The next parameter; whether it is in canonical form is noted.
    private static func parameter(
        from reader: inout StructuredField, input: inout SignatureInput
    ) throws(ParseError) -> (key: ByteRange, value: StructuredField.BareItem)? {
        let before = reader.offset
        guard let key = try reader.nextParameter() else { return nil }
        if key.range.lowerBound != before + 1 { input.note(.spacing) }
        let start = reader.offset + 1
        let value = try reader.parameterValue()
        switch value {
        case .boolean(true): if reader.offset >= start { input.note(.boolean) }
        case .integer(let number): if reader.offset - start != number.writtenLength { input.note(.number) }
        case .boolean, .string, .token: break
        // No registered parameter is one of these, and each has more spellings than one.
        case .bytes, .decimal, .date, .displayString: input.note(.kind)
        }
        return (key, value)
    }

    /// Source: RFC 9421 §2.3.
    private mutating func setParameter(
        _ key: ByteRange, value: StructuredField.BareItem, of reader: borrowing StructuredField,
        at base: UInt32
    ) {
        let name = reader.bytes.extracting(key.range)
        switch name.count {
        case 3 where name.matches("alg"):
            SignatureInput.set(&algorithm, to: value.string?.offset(by: base), flaw: &flaw)
        case 3 where name.matches("tag"):
            SignatureInput.set(&tag, to: value.string?.offset(by: base), flaw: &flaw)
        case 5 where name.matches("nonce"):
            SignatureInput.set(&nonce, to: value.string?.offset(by: base), flaw: &flaw)
        case 5 where name.matches("keyid"):
            SignatureInput.set(&keyID, to: value.string?.offset(by: base), flaw: &flaw)
        case 7 where name.matches("created"): SignatureInput.set(&created, to: value.integer, flaw: &flaw)
        case 7 where name.matches("expires"): SignatureInput.set(&expires, to: value.integer, flaw: &flaw)
        default: break
        }
    }

    private static func set<Value>(_ place: inout Value?, to value: Value?, flaw: inout Flaw?) {
        if place != nil, flaw == nil { flaw = .repeated }
        if value == nil, flaw == nil { flaw = .kind }
        place = value
    }

    private mutating func note(_ flaw: Flaw) { if self.flaw == nil { self.flaw = flaw } }
}

extension SignatureInput.SelectionRule {
    /// The signature that is looked for, in a sentence that begins with it.
    fileprivate var words: String {
        switch self {
        case .byTag: "with tag=\"countersign\""
        case .tagged(let tag): "with tag=\"\(tag)\""
        case .labelled(let label): "labelled \"\(label)\", which the app's policy asks for"
        }
    }
}

extension StructuredField.BareItem {
    fileprivate var string: ByteRange? { if case .string(let slice) = self { slice } else { nil } }
    fileprivate var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
}

extension Int64 {
    /// Digits, and the sign where there is one.
    fileprivate var writtenLength: Int {
        var length = self < 0 ? 2 : 1
        var rest = magnitude
        while rest >= 10 {
            rest /= 10
            length += 1
        }
        return length
    }
}

extension ByteRange {
    func offset(by offset: UInt32) -> ByteRange {
        ByteRange(from: Int(start) + Int(offset), to: Int(end) + Int(offset))
    }

    fileprivate func offset(back offset: UInt32) -> ByteRange {
        ByteRange(from: Int(start) - Int(offset), to: Int(end) - Int(offset))
    }
}

extension Component {
    /// The same component in a text that begins `offset` bytes later.
    fileprivate func moved(by offset: UInt32) -> Component { moved { $0.offset(by: offset) } }

    /// The same in a text that begins `offset` bytes earlier.
    fileprivate func moved(back offset: UInt32) -> Component { moved { $0.offset(back: offset) } }

    private func moved(_ move: (ByteRange) -> ByteRange) -> Component {
        var moved = self
        moved.identifier = move(identifier)
        moved.name = move(name)
        if !parameters.isDisjoint(with: [.key, .name]) { moved.argument = move(argument) }
        return moved
    }
}

extension Refusal {
    init(_ problem: ParseError, in field: String) {
        self.init(
            .malformed, detail: "\(field): \(problem) of its value")
    }
}

extension MessageSignatures {
    /// The signature of that label: a short one is answered, a longer one is left in `workspace.decoded`, at
    /// the slice. Source: RFC 9421 §4.2.
    static func signature(
        labelled label: ByteRange, in message: Request, workspace: inout Workspace
    ) throws(Refusal) -> (short: ShortBytes, long: ByteRange?) {
        var found: (short: ShortBytes, long: ByteRange?)?
        let bytes = message.head.span
        let label = bytes.extracting(label.range)
        for field in message.fields where field.known == .signature {
            var reader = StructuredField(bytes.extracting(field.value.range))
            do throws(ParseError) {
                while let key = try reader.nextMember() {
                    guard reader.bytes.extracting(key.range).matches(label) else {
                        try reader.skipMemberValue()
                        continue
                    }
                    guard found == nil else { throw reader.error("expected each label once") }
                    guard reader.takeEquals(), case .bytes(let text) = try reader.bareItem(),
                        let value = decode(reader.bytes.extracting(text.range), into: &workspace.decoded)
                    else {
                        throw reader.error(
                            "expected a signature of at most \(Claim.longestSignature) bytes in Base64 "
                                + "between colons"
                        )
                    }
                    try reader.skipParameters()
                    found = value
                }
            } catch {
                throw Refusal(error, in: "Signature")
            }
        }
        guard let found else {
            throw Refusal(
                .malformed,
                detail: "Signature: expected a member \"\(label.text)\", which Signature-Input names")
        }
        return found
    }

    private static func decode(
        _ text: borrowing Span<UInt8>, into buffer: inout ByteBuffer
    ) -> (short: ShortBytes, long: ByteRange?)? {
        if text.count <= (ShortBytes.longest + 2) / 3 * 4, let short = Base64.decodeShort(text, as: .standard)
        {
            return (short, nil)
        }
        buffer.clear()
        guard Base64.decode(text, as: .standard, into: &buffer, limit: Claim.longestSignature) else {
            return nil
        }
        return (ShortBytes(), ByteRange(from: 0, to: buffer.count))
    }
}

/// The signature that was chosen, and the components of all that were read.
struct SignatureInputBuffers: ~Copyable, SchemeBuffers {
    var input = SignatureInput()
    var components: [Component] = []
    private var knownLists: [KnownList] = []
    private var oldest = 0

    init() { components.reserveCapacity(64) }

    /// A list of components that was read before: a client sends few different ones. Equal bytes have an
    /// equal meaning, because reading a list depends on nothing behind its closing parenthesis.
    private struct KnownList {
        /// From the opening to the closing parenthesis.
        var text: [UInt8]
        /// With slices of `text`.
        var components: [Component]
    }

    private static let mostKnownLists = 4
    private static let longestKnownList = 1_024

    /// Appends the components of the list that begins here, if such a list was read before.
    mutating func takeKnownList(from reader: inout StructuredField, at base: UInt32) -> Bool {
        let rest = reader.bytes.extracting(reader.offset...)
        for known in knownLists where rest.count >= known.text.count {
            guard rest.extracting(0..<known.text.count).matches(known.text.span) else { continue }
            let place = base + UInt32(truncatingIfNeeded: reader.offset)
            for component in known.components { components.append(component.moved(by: place)) }
            reader.skip(known.text.count)
            return true
        }
        return false
    }

    /// Keeps the list from `start` to the reader's place, in canonical form, and its components from the
    /// index `first` on.
    mutating func keepList(
        of reader: borrowing StructuredField, from start: Int, at base: UInt32, components first: Int
    ) {
        guard reader.offset - start <= SignatureInputBuffers.longestKnownList,
            components.count - first <= SignatureInput.most.components
        else { return }
        let text = reader.bytes.extracting(start..<reader.offset).withUnsafeBufferPointer { Array($0) }
        let place = base + UInt32(truncatingIfNeeded: start)
        let list = KnownList(
            text: text, components: components[first...].map { $0.moved(back: place) })
        if knownLists.count < SignatureInputBuffers.mostKnownLists {
            knownLists.append(list)
        } else {
            knownLists[oldest] = list
            oldest = (oldest + 1) % SignatureInputBuffers.mostKnownLists
        }
    }
}
