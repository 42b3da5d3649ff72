import CountersignWire
import TestRounds
import Testing

@testable import CountersignSchemes

/// The quick ways to read Signature-Input and Signature read what the strict reader reads, or leave it to that.
@Suite struct PlainSignatureTests {
    @Test("values of Signature-Input, whole and altered, read alike with and without the quick way")
    func signatureInput() throws {
        var values = SignatureValues(seed: testSeed())
        // The quick way has met lists before; the strict reader has met none.
        let part = SchemePartOf<SignatureInputBuffers>()
        let rules = [SignatureInput.SelectionRule.byTag, .labelled("app"), .tagged("countersign-device")]
        let rounds = rounds(100_000)
        var taken = 0
        for number in 0..<rounds {
            let request = values.request()
            let rule = number % 4 < 2 ? rules[0] : rules[number % 4 - 1]
            let strictPart = SchemePartOf<SignatureInputBuffers>()
            let plain = read(request, into: part, rule: rule, reading: .plainFirst)
            let strict = read(request, into: strictPart, rule: rule, reading: .strictOnly)
            guard plain == strict, plain != nil || part.buffers.isSame(as: strictPart.buffers) else {
                Issue.record("\(request.head.span.text): \(plain ?? "read"), strictly: \(strict ?? "read")")
                return
            }
            if plain == nil { taken += 1 }
        }
        #expect(taken > rounds / 10, "most values must not be refused")
    }

    /// Nil, or why it is refused.
    private func read(
        _ request: Request, into part: SchemePartOf<SignatureInputBuffers>,
        rule: SignatureInput.SelectionRule, reading: SignatureInput.Reading
    ) -> String? {
        do throws(Refusal) {
            try SignatureInput.read(from: request, into: part, rule: rule, reading: reading)
            return nil
        } catch {
            return "\(error.code) \(error.detail)"
        }
    }

    @Test("values of Signature, whole and altered, are read alike with and without the quick way")
    func signature() throws {
        var values = SignatureValues(seed: testSeed())
        let rounds = rounds(100_000)
        var taken = 0
        for _ in 0..<rounds {
            let request = values.request()
            guard let field = request.fields.first(where: { $0.known == .signatureInput }) else { continue }
            let value = request.head[field.value.range]
            let end = value.firstIndex(of: UInt8(ascii: "=")) ?? value.startIndex
            let label = ByteRange(from: field.value.range.lowerBound, to: end)
            // What is no key is no label; the strict reader of Signature-Input refuses it before.
            guard (try? StructuredField.isKey(request.head[label.range])) == true else { continue }
            let quick = signature(labelled: label, in: request) { workspace throws(Refusal) in
                try MessageSignatures.signature(labelled: label, in: request, workspace: &workspace)
            }
            let strict = signature(labelled: label, in: request) { workspace throws(Refusal) in
                try MessageSignatures.signatureAmongSeveral(
                    labelled: label, in: request, workspace: &workspace)
            }
            guard quick == strict else {
                Issue.record("\(request.head.span.text): \(quick), strictly: \(strict)")
                return
            }
            if quick.hasPrefix("[") { taken += 1 }
        }
        #expect(taken > rounds / 10, "most values must not be refused")
    }

    /// The signature's bytes, or why there is none.
    private func signature(
        labelled label: ByteRange, in request: Request,
        by read: (inout Workspace) throws(Refusal) -> (short: ShortBytes, long: ByteRange?)
    ) -> String {
        var workspace = Workspace()
        do throws(Refusal) {
            let found = try read(&workspace)
            guard let long = found.long else { return "\(found.short.array)" }
            return "\(workspace.decoded.array[long.range])"
        } catch {
            return "\(error)"
        }
    }
}

extension StructuredField {
    /// Whether the bytes are a key alone.
    fileprivate static func isKey(_ bytes: ArraySlice<UInt8>) throws(ParseError) -> Bool {
        let bytes = Array(bytes)
        var reader = StructuredField(bytes.span)
        guard !bytes.isEmpty, let key = try reader.nextMember() else { return false }
        return key.count == bytes.count
    }
}

extension SignatureInputBuffers {
    /// Whether the same was read.
    fileprivate func isSame(as other: borrowing SignatureInputBuffers) -> Bool {
        let (one, two) = (input, other.input)
        guard one.label == two.label, one.parameters == two.parameters, one.created == two.created,
            one.expires == two.expires, one.nonce == two.nonce, one.keyID == two.keyID,
            one.algorithm == two.algorithm, one.tag == two.tag,
            one.isOneOfSeveral == two.isOneOfSeveral, list.text == other.list.text
        else { return false }
        return list.components.elementsEqual(other.list.components) {
            $0.kind == $1.kind && $0.parameters == $1.parameters && $0.identifier == $1.identifier
                && $0.name == $1.name && $0.known == $1.known && $0.argument == $1.argument
        }
    }
}

/// Requests with signatures as signers write them, and with some of the bytes altered.
private struct SignatureValues {
    private var random: SplitMix64

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    private static let lists = [
        #"("@method" "@authority" "@path" "@query" "countersign-release")"#,
        #"("@method" "@authority" "@path" "@query" "content-digest" "content-type" "x")"#,
        #"("signature";key="app")"#, "()", #"("@method")"#, #"("@method"  "@path")"#,
        #"("@query-param";name="a" "x";bs "y";sf)"#, #"("@path" "@path")"#,
    ]

    private static let parameters = [
        ";created=1800000000", ";created=0", ";created=01", ";created=-5", ";created=1.5", ";created",
        ";created=999999999999999", ";created=1234567890123456", ";expires=1800000060",
        #";nonce="benchmark-1000000-x""#, #";nonce="""#, #";nonce="a\"b""#, ";nonce=abc", #"; nonce="a""#,
        #";keyid="8ASPM4g7vMsuFoOd6v1VRorCMN0IshKP""#, #";keyid="s_AAAAAAAAAAAAAAAAAAAAAA.3""#,
        #";keyid="a\\b""#, #";alg="hmac-sha256""#, #";alg="ecdsa-p256-sha256""#, ";alg=?1",
        #";tag="countersign""#, #";tag="countersign-device""#, #";tag="other""#, ";x=1", #";Tag="a""#,
        #";created="1""#, #";nonce=:AAAA:"#, #";createdx=1"#,
    ]

    private static let usual = [
        ";created=1800000000", #";nonce="benchmark-1000000-x""#,
        #";keyid="8ASPM4g7vMsuFoOd6v1VRorCMN0IshKP""#, #";alg="hmac-sha256""#, #";tag="countersign""#,
    ]

    private static let signatures = [
        "uR0ZuSW1nGO4w8Y3YJ0uJmOqH0wZ9wv2mJ3pR3rV1nA=", "AAAA", "", "AA==", "AAA=", "AAB=", "!!!!",
        String(repeating: "AAAA", count: 22), String(repeating: "AAAA", count: 21) + "AA==",
        String(repeating: "AAAA", count: 40),
    ]

    private static let bytes = Array(#";=()",\: 0.?@%aAz*-/+"#.utf8) + [0, 9, 0x7F, 0xC3]

    mutating func request() -> Request {
        var draft = Draft(method: "GET", target: Array("/a?b=c".utf8), authority: "h.example")
        var inputs: [[UInt8]] = []
        var signatures: [[UInt8]] = []
        for number in 0..<(chance(of: 6) ? 2 : 1) {
            let label = number == 0 ? "app" : chance(of: 4) ? "app" : "device"
            inputs.append(altered(Array("\(label)=\(list())\(parameterText())".utf8)))
            signatures.append(altered(Array("\(label)=:\(pick(Self.signatures)):".utf8)))
        }
        add("Signature-Input", values: inputs, to: &draft)
        add("Signature", values: signatures, to: &draft)
        return draft.request()
    }

    /// In one field or in several.
    private mutating func add(_ name: String, values: [[UInt8]], to draft: inout Draft) {
        if chance(of: 2) {
            for value in values { draft.fields.append(field(name, value: value)) }
        } else {
            let joined = values.joined(separator: Array(chance(of: 8) ? ",".utf8 : ", ".utf8))
            draft.fields.append(field(name, value: Array(joined)))
        }
    }

    private func field(_ name: String, value: [UInt8]) -> Draft.Field {
        var field = Draft.Field(name: name, value: "")
        field.value = value
        return field
    }

    private mutating func list() -> String { chance(of: 3) ? pick(Self.lists) : Self.lists[0] }

    private mutating func parameterText() -> String {
        guard chance(of: 2) else { return Self.usual.joined() }
        let count = Int(random.next() % 7)
        return (0..<count).map { _ in pick(Self.parameters) }.joined()
    }

    private mutating func altered(_ value: [UInt8]) -> [UInt8] {
        var value = value
        guard chance(of: 3), !value.isEmpty else { return value }
        for _ in 0...(random.next() % 3) {
            let place = Int(random.next() % UInt64(value.count))
            let byte = Self.bytes[Int(random.next() % UInt64(Self.bytes.count))]
            switch random.next() % 3 {
            case 0: value[place] = byte
            case 1: value.insert(byte, at: place)
            default: if value.count > 1 { value.remove(at: place) }
            }
        }
        return value
    }

    private mutating func chance(of count: UInt64) -> Bool { random.next() % count == 0 }

    private mutating func pick<Value>(_ values: [Value]) -> Value {
        values[Int(random.next() % UInt64(values.count))]
    }
}
