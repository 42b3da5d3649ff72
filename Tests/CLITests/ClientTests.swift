import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignWire
import Foundation
import Testing

@testable import CountersignCLI

@Suite struct ClientTests {
    @Test(
        "URLs and their parts",
        arguments: [
            ("https://a.example", "https://a.example", "/"), ("HTTPS://a", nil, ""),
            ("https://A.example:443/x?y#z", "https://a.example", "/x?y"), ("http://a:80/", "http://a", "/"),
            ("http://a:8080?q=/", "http://a:8080", "/?q=/"),
            ("https://[::1]:8443/%2f", "https://[::1]:8443", "/%2f"), ("https://u:p@a/", nil, ""),
            ("https:///x", nil, ""), ("https://a:0/", nil, ""), ("https://a:99999/", nil, ""),
            ("https://a/b c", nil, ""), ("https://a/é", nil, ""), ("ftp://a", nil, ""),
            ("a.example", nil, ""), ("", nil, ""),
        ])
    func urls(_ row: (url: String, origin: String?, target: String)) throws {
        guard let origin = row.origin else {
            let fault = #expect(throws: OperationalError.self) { try Origin.split(row.url) }
            #expect(fault?.kind == .usage)
            return
        }
        let parts = try Origin.split(row.url)
        #expect(parts.origin.description == origin)
        #expect(String(decoding: parts.target, as: UTF8.self) == row.target)
    }

    @Test(
        "fields",
        arguments: [
            ("A: b", "b"), ("A:b", "b"), ("A: ", ""), ("A:  b \t", "b"), ("A", nil), (": b", nil),
            ("A b: c", nil), ("A: b\nC: d", nil), ("A: \0", nil), ("Ä: b", nil),
        ])
    func fields(_ row: (text: String, value: String?)) {
        let field = try? Draft.Field.read(row.text)
        #expect(field.map { String(decoding: $0.value, as: UTF8.self) } == row.value)
    }

    @Test func aProfileIsKeptPrivate() throws {
        let home = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-\(UUID().uuidString)"
        )
        .path
        defer { try? FileManager.default.removeItem(atPath: home) }
        let environment = Environment(variables: ["HOME": home])
        let folder = try ProfileFolder("demo", environment: environment)
        #expect(folder.path == "\(home)/.config/countersign/demo")
        var profile = Profile(
            url: "https://a.example", keyID: try #require(.init("r_1")), scheme: .messageSignatures)
        profile.pins = [try Trust.Pin("sha256/" + String(repeating: "A", count: 43) + "=")]
        for text in ["first", "second"] { try folder.write(profile, secret: Array(text.utf8)) }

        let read = try folder.read()
        #expect(read.profile.json == profile.json)
        #expect(
            read.key.secret.withExposedBytes { span in (0..<span.count).map { span[$0] } }
                == Array("second".utf8))
        func mode(_ path: String) throws -> Int {
            try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
        }
        #expect(try mode(folder.path) == 0o700)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(names == ["profile.json", "secret"])
        for name in names { #expect(try mode("\(folder.path)/\(name)") == 0o600) }

        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
        #expect(throws: OperationalError.self) { try folder.write(profile, secret: [1]) }
        #expect(try mode(folder.path) == 0o755)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o644], ofItemAtPath: "\(folder.path)/secret")
        #expect(throws: OperationalError.self) { try folder.read() }
    }

    @Test("profile names", arguments: ["", "..", "a b", "é", ".hidden"])
    func names(_ name: String) {
        #expect(throws: OperationalError.self) {
            try ProfileFolder(name, environment: Environment(variables: ["HOME": "/nowhere"]))
        }
    }

    @Test func configurationHomeComesFirst() throws {
        let environment = Environment(variables: ["HOME": "/h", "XDG_CONFIG_HOME": "/x"])
        #expect(try ProfileFolder("p", environment: environment).path == "/x/countersign/p")
        #expect(try ProfileFolder("./p", environment: environment).path == "./p")
        #expect(throws: OperationalError.self) {
            try ProfileFolder("p", environment: Environment(variables: [:]))
        }
    }
}
