import CountersignWire

/// The one signature of a request that is meant for us, out of all that its Signature-Input names.
/// Source: RFC 9421 §4.1.
struct SignatureInput: BitwiseCopyable {
    /// All slices are of `Request.head`; strings without their quotes.
    var label = Slice.empty
    /// By index into `Workspace.components`.
    var components = Slice.empty
    /// The value of `@signature-params`.
    var parameters = Slice.empty
    var created: Int64?
    var expires: Int64?
    var nonce: Slice?
    var keyID: Slice?
    var algorithm: Slice?
    var tag: Slice?
    /// Whether others could be meant as well.
    var isOneOfSeveral = false
    /// Why we could not take it, if it is for us; another's signature may well look so.
    var flaw: Flaw?

    /// As many components as one signature may name, and as many signatures as a request may carry.
    static let most = (components: 64, signatures: 8)
    /// Of those for which a whole field or query is parsed: this happens before anybody has proved who he is.
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
    enum Rule {
        /// The one with our tag; without one, the first that has no tag.
        case byTag
        case labelled(String)
        /// The one with that tag; one without a tag is not it.
        case tagged(StaticString)
    }

    static func read(_ request: Request, _ workspace: inout Workspace, _ rule: Rule) throws(Refusal) {
        workspace.components.removeAll(keepingCapacity: true)
        var choice = Choice()
        // Beyond the limit nothing is read: `made` refuses it.
        for field in request.fields where field.known == .signatureInput && choice.isWithinLimit {
            var reader = StructuredField(request.head.span.extracting(field.value.range))
            do throws(StructuredField.Problem) {
                while choice.isWithinLimit, let label = try reader.nextMember() {
                    var input = try member(&reader, at: field.value.start, &workspace)
                    input.label = label.moved(by: field.value.start)
                    switch rule {
                    case .byTag: choice.offer(input, isOurs: input.tag.map { request.matches($0, "countersign") })
                    case .labelled(let label):
                        choice.offer(input, isOurs: request.head[input.label.range].elementsEqual(label.utf8))
                    case .tagged(let tag):
                        choice.offer(input, isOurs: input.tag.map { request.matches($0, tag) } ?? false)
                    }
                }
            } catch {
                throw Refusal(error, in: "Signature-Input")
            }
        }
        workspace.signature = try choice.made(rule)
    }

    /// Reads the signature with our tag; false where there is none.
    static func isTagged(_ message: Request, _ workspace: inout Workspace) throws(Refusal) -> Bool {
        guard message.names.contains(.signatureInput) else { return false }
        do throws(Refusal) {
            try read(message, &workspace, .byTag)
        } catch {
            if error.code == .unsigned { return false }
            throw error
        }
        return workspace.signature.tag != nil
    }

    /// Which of several signatures is meant for us.
    private struct Choice {
        private var tagged: SignatureInput?
        private var untagged: SignatureInput?
        private var count = (all: 0, tagged: 0, untagged: 0)

        var isWithinLimit: Bool { count.all <= most.signatures }

        /// `isOurs` is nil for a signature without a tag.
        mutating func offer(_ input: SignatureInput, isOurs: Bool?) {
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

        func made(_ rule: Rule) throws(Refusal) -> SignatureInput {
            guard isWithinLimit else { throw Refusal(.malformed, "more than 8 signatures") }
            guard count.tagged <= 1 else { throw Refusal(.malformed, "two signatures \(rule.words)") }
            guard var input = tagged ?? untagged else {
                throw Refusal(.unsigned, "no signature in Signature-Input \(rule.words)")
            }
            input.isOneOfSeveral = count.tagged == 0 && count.untagged > 1
            if let flaw = input.flaw { throw Refusal(.malformed, "Signature-Input: expected \(flaw.expected)") }
            return input
        }
    }

    /// An inner list of component identifiers, and its parameters. `base` is where the reader's text begins in the head.
    ///
    /// What is signed is the canonical spelling. Every signer sends that; who sends another is told so, rather than the
    /// text being written anew here, where a second writer could get it wrong.
    private static func member(
        _ reader: inout StructuredField, at base: UInt32, _ workspace: inout Workspace
    ) throws(StructuredField.Problem) -> SignatureInput {
        var input = SignatureInput()
        guard reader.takeEquals() else { throw reader.problem("\"=(\": a list of components") }
        let start = reader.at
        guard reader.openList() else { throw reader.problem("\"(\": a list of components") }
        let firstComponent = workspace.components.count
        var isFirst = true
        while true {
            let before = reader.at
            let wasFirst = isFirst
            let isItem = try reader.nextInList(first: &isFirst)
            let spaces = reader.at - before - (isItem ? 0 : 1)
            if spaces != (isItem && !wasFirst ? 1 : 0) { input.note(.spacing) }
            guard isItem else { break }
            workspace.components.append(try component(&reader, at: base, &input))
        }
        while let (key, value) = try parameter(&reader, &input) { input.keep(key, value, of: reader, at: base) }
        input.components = Slice(firstComponent, workspace.components.count)
        if input.components.count > most.components { input.note(.components) }
        input.parameters = Slice(start, reader.at).moved(by: base)
        return input
    }

    private static func component(
        _ reader: inout StructuredField, at base: UInt32, _ input: inout SignatureInput
    ) throws(StructuredField.Problem) -> Component {
        let start = reader.at
        let name = try reader.string()
        var component = Component(name, reader.bytes.extracting(name.range))
        while let (key, value) = try parameter(&reader, &input) {
            component.take(reader.bytes.extracting(key.range), value, at: base)
        }
        component.name = name.moved(by: base)
        component.identifier = Slice(start, reader.at).moved(by: base)
        return component
    }

    /// The next parameter; whether it is in canonical form is noted.
    private static func parameter(
        _ reader: inout StructuredField, _ input: inout SignatureInput
    ) throws(StructuredField.Problem) -> (key: Slice, value: StructuredField.BareItem)? {
        let before = reader.at
        guard let key = try reader.nextParameter() else { return nil }
        if key.range.lowerBound != before + 1 { input.note(.spacing) }
        let start = reader.at + 1
        let value = try reader.parameterValue()
        switch value {
        case .boolean(true): if reader.at >= start { input.note(.boolean) }
        case .integer(let number): if reader.at - start != number.writtenLength { input.note(.number) }
        case .boolean, .string, .token: break
        // No registered parameter is one of these, and each has more spellings than one.
        case .bytes, .decimal, .date, .displayString: input.note(.kind)
        }
        return (key, value)
    }

    /// Source: RFC 9421 §2.3.
    private mutating func keep(
        _ key: Slice, _ value: StructuredField.BareItem, of reader: borrowing StructuredField, at base: UInt32
    ) {
        let name = reader.bytes.extracting(key.range)
        switch name.count {
        case 3 where name.matches("alg"): SignatureInput.set(&algorithm, value.string?.moved(by: base), &flaw)
        case 3 where name.matches("tag"): SignatureInput.set(&tag, value.string?.moved(by: base), &flaw)
        case 5 where name.matches("nonce"): SignatureInput.set(&nonce, value.string?.moved(by: base), &flaw)
        case 5 where name.matches("keyid"): SignatureInput.set(&keyID, value.string?.moved(by: base), &flaw)
        case 7 where name.matches("created"): SignatureInput.set(&created, value.integer, &flaw)
        case 7 where name.matches("expires"): SignatureInput.set(&expires, value.integer, &flaw)
        default: break
        }
    }

    private static func set<Value>(_ place: inout Value?, _ value: Value?, _ flaw: inout Flaw?) {
        if place != nil, flaw == nil { flaw = .repeated }
        if value == nil, flaw == nil { flaw = .kind }
        place = value
    }

    private mutating func note(_ flaw: Flaw) { if self.flaw == nil { self.flaw = flaw } }
}

extension SignatureInput.Rule {
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
    fileprivate var string: Slice? { if case .string(let slice) = self { slice } else { nil } }
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

extension Slice {
    func moved(by offset: UInt32) -> Slice { Slice(Int(start) + Int(offset), Int(end) + Int(offset)) }
}

extension Refusal {
    init(_ problem: StructuredField.Problem, in field: String) {
        self.init(.malformed, "\(field): expected \(problem.expected) at byte \(problem.at) of its value")
    }
}
