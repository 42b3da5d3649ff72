import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

/// What each scheme owes the rest of the product. A scheme that is added without one of these fails here, in
/// a sentence that names what is missing; CONTRIBUTING.md, "Add a scheme", is the order in which they are met.
struct SchemeObligationsTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")

    private static func text(_ path: String) throws -> String {
        String(decoding: try Data(contentsOf: root.appending(path: path)), as: UTF8.self)
    }

    @Test("the registry has each signing scheme once, and `definition` names its own type")
    func registry() {
        for name in SchemeName.allCases where name != .token {
            let schemes = SchemeRegistry.standard.schemes.filter { $0.name == name }
            #expect(schemes.count == 1, "SchemeRegistry.standard: expected \(name.rawValue) once")
            #expect(
                schemes.allSatisfy { type(of: $0) == name.definition },
                "SchemeName.definition: \(name.rawValue) names the type of another scheme")
        }
        #expect(SchemeName.signing.count == SchemeRegistry.standard.schemes.count)
        #expect(SchemeRegistry.standard.schemes.count <= 8, "DetectedSchemes has eight bits")
    }

    @Test("numbers in the replay file are from 1, and no two schemes share one")
    func replayNumbers() {
        let numbers = SchemeName.allCases.map(\.traits.replayNumber)
        #expect(Set(numbers).count == numbers.count)
        #expect(!numbers.contains(0))
        // A replay file outlives the process.
        let written: [(SchemeName, UInt8)] = [
            (.messageSignatures, 1), (.sigV4, 2), (.formMD5, 3), (.authV1, 4), (.authV2, 5), (.authV4, 6),
        ]
        for (name, number) in written { #expect(name.traits.replayNumber == number) }
    }

    @Test("the coverage names each part of a request once")
    func coverage() {
        for scheme in SchemeRegistry.standard.schemes {
            let parts = scheme.coverage.covered + scheme.coverage.uncovered
            #expect(Set(parts).count == parts.count, "\(scheme.name.rawValue): a part twice")
            #expect(!scheme.coverage.covered.isEmpty, "\(scheme.name.rawValue) covers nothing")
        }
    }

    @Test(
        "the layout's places have the signature and the key id of a signed request",
        arguments: SchemeName.signing)
    func layout(_ name: SchemeName) throws {
        let layout = try #require(name.layout, "\(name.rawValue) has no layout")
        let scheme = try #require(SchemeRegistry.standard.scheme(named: name))
        let draft = try SchemeObligationsTests.signed(by: scheme)
        let id = SchemeObligationsTests.values(at: layout.keyID, in: draft)
        #expect(id == ["r_obligations"], "\(name.rawValue): key id at \(layout.keyID)")
        let signature = SchemeObligationsTests.values(at: layout.signature, in: draft)
        #expect(signature.count == 1, "\(name.rawValue): signature at \(layout.signature)")
        var workspace = Workspace()
        let claim = try #require(try scheme.claim(in: draft.request(), workspace: &workspace))
        let written = try #require(signature.first)
        switch layout.encoding {
        case .byteSequence:
            #expect(written == ":\(Base64.encode(claim.mac.array.span, as: .standard)):")
        case .hexadecimal(let bytes):
            #expect(claim.mac.count == bytes)
            #expect(written == Hex.encode(claim.mac.span))
        }
    }

    @Test("the lines of the string to sign are those of the layout", arguments: SchemeName.signing)
    func lines(_ name: SchemeName) throws {
        let scheme = try #require(SchemeRegistry.standard.scheme(named: name))
        let draft = try SchemeObligationsTests.signed(by: scheme)
        var workspace = Workspace()
        let claim = try #require(try scheme.claim(in: draft.request(), workspace: &workspace))
        try scheme.writeStringToSign(for: claim, of: draft.request(), into: &workspace)
        let canonical = scheme.canonicalRequest(in: workspace)
        let text = canonical.isEmpty ? workspace.text.displayText : canonical
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let layout = try #require(name.layout)
        switch layout.lines {
        case .named: for line in lines { #expect(line.contains(":"), "\(name.rawValue): \(line)") }
        case .positional(let names, _):
            #expect(lines.count >= names.count, "\(name.rawValue): expected at least the lines \(names)")
            if names.first == "method" { #expect(lines.first == Substring(draft.method)) }
        }
        if let first = layout.firstParameterLine {
            let parameters = try #require(lines.dropFirst(first).first, "\(name.rawValue): no line \(first)")
            #expect(parameters.contains("="), "\(name.rawValue): \(parameters)")
        }
        #expect(layout.firstParameterLine != nil || name.traits.signedParameters == .none)
    }

    @Test(
        "published vectors, a heading of the protocol, and a row of the lab's matrix",
        arguments: SchemeName.signing)
    func documents(_ name: SchemeName) throws {
        let heading = "## `\(name.rawValue)`"
        let protocolText = try SchemeObligationsTests.text("docs/protocol.md")
        #expect(
            protocolText.contains("\n\(heading)") || protocolText.contains(": `\(name.rawValue)`\n"),
            "docs/protocol.md has no heading \(heading)")
        let vectors = try SchemeObligationsTests.text("Vectors/README.md")
        #expect(vectors.contains("`\(name.rawValue)/"), "Vectors/README.md has no row of \(name.rawValue)")
        let matrix = try SchemeObligationsTests.text("Vectors/lab/matrix.json")
        #expect(
            matrix.contains("\"\(name.rawValue)"), "Vectors/lab/matrix.json has no row of \(name.rawValue)")
    }

    private static func field(_ name: String, of draft: Draft) -> String? {
        draft.fields.first { $0.name.lowercased() == name }.map { String(decoding: $0.value, as: UTF8.self) }
    }

    private static func signed(by scheme: any Scheme) throws -> Draft {
        var draft = Draft(
            method: "GET", target: Array("/notes?a=1".utf8), authority: "api.example", transport: .tls)
        if scheme.name.traits.signedParameters == .jsonMembers {
            draft.method = "POST"
            draft.body = Array(#"{"a":1}"#.utf8)
        }
        let key = try #require(KeyID("r_obligations"))
        let credentials = Credentials(
            keyID: key, key: SigningKey(Secret(copying: Array("secret".utf8).span)), platform: "ios",
            version: "1.0")
        let nonce = Nonce.make(for: scheme.name)
        #expect(nonce.utf8.count == scheme.name.traits.nonceLength)
        try scheme.sign(&draft, as: credentials, at: 1_760_000_000, nonce: nonce)
        return draft
    }

    /// The text at each of the places that the draft has.
    private static func values(at places: [SchemeLayout.Place], in draft: Draft) -> [String] {
        places.compactMap { place in
            switch place {
            case .parameter(let name), .formField(let name):
                let query = String(decoding: draft.target, as: UTF8.self).split(separator: "?").last ?? ""
                return query.split(separator: "&").first { $0.hasPrefix("\(name)=") }
                    .map { String($0.dropFirst(name.utf8.count + 1)) }
            case .field(let name): return SchemeObligationsTests.field(name, of: draft)
            case .within(let name, let mark, let ends):
                guard let value = SchemeObligationsTests.field(name, of: draft),
                    let range = value.firstRange(of: mark)
                else {
                    return nil
                }
                return String(value[range.upperBound...].prefix { !ends.contains($0) })
            }
        }
    }
}
