import CountersignWire

/// The one signature of a request that is meant for us, out of all that its Signature-Input names.
/// Source: RFC 9421 §4.1.
struct SignatureInput: BitwiseCopyable {
    /// All slices are of `Request.head`; strings without their quotes.
    var label = ByteRange.empty
    /// The covered components: an index into ``SignatureInputBuffers/lists``.
    var list = 0
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
        try read(from: request, into: workspace.part(SignatureInputBuffers.self), rule: rule)
    }

    /// Whether parameters in their usual form are taken without the strict reader. Tests compare the two.
    enum Reading { case plainFirst, strictOnly }

    static func read(
        from request: Request, into part: SchemePartOf<SignatureInputBuffers>, rule: SelectionRule,
        reading: Reading = .plainFirst
    ) throws(Refusal) {
        part.buffers.forgetUnknownLists()
        if !part.buffers.candidates.isEmpty { part.buffers.candidates.removeAll(keepingCapacity: true) }
        var choice = CandidateSelection()
        // Beyond the limit nothing is read: `selected` refuses it.
        for index in request.fields.indices
        where request.fields[index].known == .signatureInput && choice.isWithinLimit {
            let value = request.fields[index].value
            var reader = StructuredField(request.head.span.extracting(value.range))
            do throws(ParseError) {
                while choice.isWithinLimit, let label = try reader.nextMember() {
                    var input = try member(
                        from: &reader, at: value.start, part: part, reading: reading)
                    input.label = label.offset(by: value.start)
                    choice.consider(
                        part.buffers.candidates.count, isOurs: rule.isMet(by: input, in: request))
                    part.buffers.candidates.append(input)
                }
            } catch {
                throw Refusal(error, in: "Signature-Input")
            }
        }
        let chosen = try choice.selected(by: rule)
        part.buffers.input = part.buffers.candidates[chosen]
        part.buffers.input.isOneOfSeveral = choice.isUncertain
        if let flaw = part.buffers.input.flaw {
            throw Refusal(.malformed, detail: "Signature-Input: expected \(flaw.expected)")
        }
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
        /// Indices of the candidates; -1 for none.
        private var tagged = -1
        private var untagged = -1
        private var count = (all: 0, tagged: 0, untagged: 0)

        var isWithinLimit: Bool { count.all <= most.signatures }

        /// Whether another signature qualifies as well as the one that is selected.
        var isUncertain: Bool { count.tagged == 0 && count.untagged > 1 }

        /// `isOurs` is nil for a signature without a tag.
        mutating func consider(_ candidate: Int, isOurs: Bool?) {
            count.all += 1
            switch isOurs {
            case true?:
                tagged = candidate
                count.tagged += 1
            case false?: break
            case nil:
                if untagged < 0 { untagged = candidate }
                count.untagged += 1
            }
        }

        /// The index of the one that is meant.
        func selected(by rule: SelectionRule) throws(Refusal) -> Int {
            guard isWithinLimit else { throw Refusal(.malformed, detail: "more than 8 signatures") }
            guard count.tagged <= 1 else { throw Refusal(.malformed, detail: "two signatures \(rule.words)") }
            guard tagged >= 0 || untagged >= 0 else {
                throw Refusal(.unsigned, detail: "no signature in Signature-Input \(rule.words)")
            }
            return tagged >= 0 ? tagged : untagged
        }
    }

    /// An inner list of component identifiers, and its parameters. `base` is where the reader's text begins
    /// in the head.
    ///
    /// The signature covers the canonical form. Signers send that form; any other form is noted as a flaw
    /// instead of being serialized again, where a second serializer could introduce an error.
    private static func member(
        from reader: inout StructuredField, at base: UInt32, part: SchemePartOf<SignatureInputBuffers>,
        reading: Reading
    ) throws(ParseError) -> SignatureInput {
        var input = SignatureInput()
        guard reader.takeEquals() else { throw reader.error("expected \"=(\": a list of components") }
        let start = reader.offset
        var isTooLong = false
        if let known = part.buffers.takeKnownList(from: &reader) {
            input.list = known
        } else {
            let components = try readList(from: &reader, input: &input)
            isTooLong = components.count > most.components
            let text = reader.bytes.extracting(start..<reader.offset)
            input.list = part.buffers.add(
                ComponentList(components, from: start, text: text),
                isCanonical: input.flaw == nil && !isTooLong)
        }
        if case .plainFirst = reading { input.takePlainParameters(from: &reader, at: base) }
        while let (key, value) = try parameter(from: &reader, input: &input) {
            input.setParameter(key, value: value, of: reader, at: base)
        }
        if isTooLong { input.note(.components) }
        input.parameters = ByteRange(from: start, to: reader.offset).offset(by: base)
        return input
    }

    /// The inner list alone, from its parenthesis on. The components' slices are of the reader's text.
    private static func readList(
        from reader: inout StructuredField, input: inout SignatureInput
    ) throws(ParseError) -> [Component] {
        guard reader.openList() else { throw reader.error("expected \"(\": a list of components") }
        var components: [Component] = []
        var isFirst = true
        while true {
            let before = reader.offset
            let wasFirst = isFirst
            let isItem = try reader.nextInList(first: &isFirst)
            let spaces = reader.offset - before - (isItem ? 0 : 1)
            if spaces != (isItem && !wasFirst ? 1 : 0) { input.note(.spacing) }
            guard isItem else { return components }
            components.append(try component(from: &reader, input: &input))
        }
    }

    private static func component(
        from reader: inout StructuredField, input: inout SignatureInput
    ) throws(ParseError) -> Component {
        let start = reader.offset
        let name = try reader.string()
        var component = Component(name: name, text: reader.bytes.extracting(name.range))
        while let (key, value) = try parameter(from: &reader, input: &input) {
            component.addParameter(reader.bytes.extracting(key.range), value: value)
        }
        component.identifier = ByteRange(from: start, to: reader.offset)
        return component
    }

    /// Takes parameters that are written as signers write them: `created` and `expires` as digits, `nonce`,
    /// `keyid`, `alg` and `tag` as strings without escapes, each once and without spaces. It stops before
    /// anything else, which ``parameter(from:input:)`` then reads or refuses; of what it takes, that would
    /// make the same.
    private mutating func takePlainParameters(from reader: inout StructuredField, at base: UInt32) {
        let text = reader.bytes
        var index = reader.offset
        scan: while let word = text.word(at: index) {
            switch word {
            case Word.created where created == nil:
                guard let end = SignatureInput.integer(in: text, from: index + 9, into: &created) else {
                    break scan
                }
                index = end
            case Word.expires where expires == nil:
                guard let end = SignatureInput.integer(in: text, from: index + 9, into: &expires) else {
                    break scan
                }
                index = end
            case Word.nonce where nonce == nil:
                guard let end = SignatureInput.string(in: text, from: index + 8, at: base, into: &nonce)
                else { break scan }
                index = end
            case Word.keyID where keyID == nil:
                guard let end = SignatureInput.string(in: text, from: index + 8, at: base, into: &keyID)
                else { break scan }
                index = end
            default:
                let short = word & 0xFFFF_FFFF_FFFF
                if short == Word.algorithm, algorithm == nil {
                    guard
                        let end = SignatureInput.string(in: text, from: index + 6, at: base, into: &algorithm)
                    else { break scan }
                    index = end
                } else if short == Word.tag, tag == nil {
                    guard let end = SignatureInput.string(in: text, from: index + 6, at: base, into: &tag)
                    else { break scan }
                    index = end
                } else {
                    break scan
                }
            }
        }
        reader.skip(index - reader.offset)
    }

    /// The beginnings of parameters, up to eight bytes, the first in the lowest bits.
    private enum Word {
        /// `;created`
        static var created: UInt64 { 0x6465_7461_6572_633B }
        /// `;expires`
        static var expires: UInt64 { 0x7365_7269_7078_653B }
        /// `;nonce="`
        static var nonce: UInt64 { 0x223D_6563_6E6F_6E3B }
        /// `;keyid="`
        static var keyID: UInt64 { 0x223D_6469_7965_6B3B }
        /// `;alg="`
        static var algorithm: UInt64 { 0x223D_676C_613B }
        /// `;tag="`
        static var tag: UInt64 { 0x223D_6761_743B }
    }

    /// Reads `=` before `start` and the digits from there, up to fifteen without leading zeros; answers where
    /// they end, and nil for anything else.
    @inline(__always)
    private static func integer(in text: Span<UInt8>, from start: Int, into place: inout Int64?) -> Int? {
        guard start < text.count, text[start - 1] == UInt8(ascii: "=") else { return nil }
        var number: Int64 = 0
        var index = start
        while index < text.count, ASCII.isDigit(text[index]) {
            guard index - start < 15 else { return nil }
            number = number * 10 + Int64(text[index] - UInt8(ascii: "0"))
            index += 1
        }
        // A point would make a decimal of it.
        guard index > start, text[start] != UInt8(ascii: "0") || index == start + 1,
            index == text.count || text[index] != UInt8(ascii: ".")
        else { return nil }
        place = number
        return index
    }

    /// Reads the string from behind its opening quote on; answers where its closing quote ends, and nil if
    /// it has escapes or is none.
    @inline(__always)
    private static func string(
        in text: Span<UInt8>, from start: Int, at base: UInt32, into place: inout ByteRange?
    ) -> Int? {
        let end = text.endOfPlainText(from: start)
        guard end < text.count, text[end] == UInt8(ascii: "\"") else { return nil }
        place = ByteRange(from: start + Int(base), to: end + Int(base))
        return end + 1
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
    /// Whether the rule means this signature; nil if it has no tag by which one could tell.
    fileprivate func isMet(by input: SignatureInput, in request: Request) -> Bool? {
        switch self {
        case .byTag: input.tag.map { request.matches($0, text: "countersign") }
        case .labelled(let label): request.head[input.label.range].elementsEqual(label.utf8)
        case .tagged(let tag): input.tag.map { request.matches($0, text: tag) } ?? false
        }
    }

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

extension Span<UInt8> {
    /// The eight bytes from `index` on, the first in the lowest bits; nil if there are fewer.
    @inline(__always)
    fileprivate func word(at index: Int) -> UInt64? {
        guard index >= 0, index + 8 <= count else { return nil }
        return UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
    }
}

extension ByteRange {
    func offset(by offset: UInt32) -> ByteRange {
        ByteRange(from: Int(start) + Int(offset), to: Int(end) + Int(offset))
    }

    func offset(back offset: Int) -> ByteRange {
        ByteRange(from: Int(start) - offset, to: Int(end) - offset)
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
        if let short = onlySignature(labelled: label, in: message) { return (short, nil) }
        return try signatureAmongSeveral(labelled: label, in: message, workspace: &workspace)
    }

    /// The signature, where one field has it alone, as most do: the label, `=`, and a short byte sequence.
    /// Nil for anything else, which ``signatureAmongSeveral(labelled:in:workspace:)`` reads or refuses.
    private static func onlySignature(labelled label: ByteRange, in message: Request) -> ShortBytes? {
        guard let field = message.value(of: .signature) else { return nil }
        let bytes = message.head.span
        let text = bytes.extracting(field.range)
        let start = label.count + 2
        guard text.count > start, text.count - start <= (ShortBytes.longest + 2) / 3 * 4 + 1,
            text[start - 2] == UInt8(ascii: "="), text[start - 1] == UInt8(ascii: ":"),
            text[text.count - 1] == UInt8(ascii: ":"),
            text.extracting(0..<label.count).matches(bytes.extracting(label.range))
        else { return nil }
        // The alphabet has no colon, so that the sequence ends nowhere else.
        return Base64.decodeShort(text.extracting(start..<text.count - 1), as: .standard)
    }

    static func signatureAmongSeveral(
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
    var candidates: [SignatureInput] = []
    /// The lists that were read before, and behind these the ones of this request alone. A client sends few
    /// different lists.
    private(set) var lists: [ComponentList] = []
    private var known = 0
    /// The known list that was met last.
    private var last = 0
    private var oldest = 0

    init() { lists.reserveCapacity(SignatureInputBuffers.mostKnown + SignatureInput.most.signatures + 1) }

    private static let mostKnown = 4
    private static let longestKnown = 1_024

    /// The list of the chosen signature.
    var list: ComponentList { lists[input.list] }

    /// Takes the list that begins here, if such a list was read before, and returns its index. Equal bytes
    /// have an equal meaning, because reading a list depends on nothing behind its closing parenthesis.
    mutating func takeKnownList(from reader: inout StructuredField) -> Int? {
        let rest = reader.bytes.extracting(reader.offset...)
        if last < known, lists[last].begins(rest) {
            reader.skip(lists[last].text.count)
            return last
        }
        for index in 0..<known where lists[index].begins(rest) {
            reader.skip(lists[index].text.count)
            last = index
            return index
        }
        return nil
    }

    /// Adds a list that is not known, and returns its index. A canonical one is known from the next request
    /// on.
    mutating func add(_ list: ComponentList, isCanonical: Bool) -> Int {
        list.isKept = isCanonical && list.text.count <= SignatureInputBuffers.longestKnown
        lists.append(list)
        return lists.count - 1
    }

    /// Begins another request: the lists of the last one become known, or are forgotten.
    mutating func forgetUnknownLists() {
        guard lists.count > known else { return }
        for index in known..<lists.count where lists[index].isKept {
            if known < SignatureInputBuffers.mostKnown {
                lists.swapAt(known, index)
                known += 1
            } else {
                lists[oldest] = lists[index]
                oldest = (oldest + 1) % SignatureInputBuffers.mostKnown
            }
        }
        lists.removeSubrange(known...)
    }
}
