import CountersignAuthority
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

@Suite struct DeploymentTests {
    @Test func firstUseMakesEverythingPrivate() throws {
        let folder = TemporaryFolder()
        let deployment = try deployment(folder.data)
        _ = try deployment.addApp(#require(AppName("demo")), settings: [], at: 5)
        func mode(_ path: String) throws -> Int {
            try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
        }
        #expect(try mode(folder.data) == 0o700)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.data)
        #expect(Set(names).isSuperset(of: ["countersign.db", "master.key", "generation"]))
        for name in names { #expect(try mode("\(folder.data)/\(name)") == 0o600, "\(name)") }
    }

    @Test(
        "a wrong master key is one fault, and nothing is changed",
        arguments: [
            ["COUNTERSIGN_MASTER_KEY": otherHexKey], ["COUNTERSIGN_MASTER_KEY": "nonsense"],
            ["COUNTERSIGN_MASTER_KEY": ""],
        ])
    func wrongKey(_ environment: [String: String]) throws {
        let folder = TemporaryFolder()
        do {
            let first = try deployment(folder.data, environment: ["COUNTERSIGN_MASTER_KEY": hexKey])
            _ = try first.addApp(#require(AppName("demo")), settings: [], at: 5)
        }
        let before = try folder.contents()
        #expect(before["countersign.db"] != nil && before["master.key"] == nil)
        let fault = #expect(throws: OperationalError.self) {
            try deployment(folder.data, environment: environment)
        }
        #expect(fault?.kind == .failed)
        #expect(try folder.contents() == before)
        let again = try deployment(folder.data, environment: ["COUNTERSIGN_MASTER_KEY": hexKey])
        #expect(try again.store.apps().count == 1)
    }

    @Test func aLostKeyFileIsNotMadeAnew() throws {
        let folder = TemporaryFolder()
        _ = try deployment(folder.data)
        try FileManager.default.removeItem(atPath: "\(folder.data)/master.key")
        let before = try folder.contents()
        let fault = #expect(throws: OperationalError.self) { try deployment(folder.data) }
        #expect(fault?.message.contains("master.key") == true)
        #expect(try folder.contents() == before)
    }

    @Test func aJournalOfAnUncleanEndStaysWhereTheKeyIsWrong() throws {
        let folder = TemporaryFolder()
        let environment = ["COUNTERSIGN_MASTER_KEY": hexKey]
        let running = try deployment(folder.data, environment: environment)
        _ = try running.addApp(#require(AppName("demo")), settings: [], at: 5)
        // As `kill -9` leaves it: the journal holds the rows, the file does not.
        let copy = TemporaryFolder()
        try FileManager.default.copyItem(atPath: folder.data, toPath: copy.data)
        let before = try copy.contents()
        #expect(before["countersign.db-wal"]?.isEmpty == false)
        #expect(throws: OperationalError.self) {
            try deployment(copy.data, environment: ["COUNTERSIGN_MASTER_KEY": otherHexKey])
        }
        #expect(try copy.contents() == before)
        #expect(try deployment(copy.data, environment: environment).store.apps().count == 1)
    }

    @Test(
        "a key file that others may read, or that is no key",
        arguments: [
            (0o640, hexKey), (0o604, hexKey), (0o600, "nonsense"), (0o600, ""), (0o600, hexKey + "00"),
        ])
    func keyFile(_ row: (mode: Int, text: String)) throws {
        let folder = TemporaryFolder()
        try FileManager.default.createDirectory(atPath: folder.data, withIntermediateDirectories: true)
        let path = "\(folder.data)/master.key"
        #expect(
            FileManager.default.createFile(
                atPath: path, contents: Data(row.text.utf8), attributes: [.posixPermissions: row.mode]))
        let fault = #expect(throws: OperationalError.self) { try deployment(folder.data) }
        #expect(fault?.message.contains("master.key") == true)
        #expect(fault?.message.contains(hexKey) == false)
        #expect(try folder.contents().keys.sorted() == ["master.key"])
    }

    @Test func environmentBeforeCredentialBeforeFile() throws {
        let folder = TemporaryFolder()
        let data = try DataFolder(folder.data, absence: .create)
        func id(_ environment: [String: String]) throws -> [UInt8]? {
            try MasterKeySource(environment: environment, folder: data).find().current?.id
        }
        #expect(try id([:]) == nil)
        #expect(
            FileManager.default.createFile(
                atPath: data.masterKey, contents: Data((hexKey + "\n").utf8),
                attributes: [.posixPermissions: 0o600]))
        let fromFile = try #require(try id([:]))
        #expect(
            FileManager.default.createFile(
                atPath: "\(folder.path)/countersign-master-key", contents: Data(otherHexKey.utf8),
                attributes: [.posixPermissions: 0o400]))
        let credential = ["CREDENTIALS_DIRECTORY": folder.path]
        let fromCredential = try #require(try id(credential))
        #expect(fromCredential != fromFile)
        #expect(try id(credential.merging(["COUNTERSIGN_MASTER_KEY": hexKey]) { $1 }) == fromFile)
    }

    @Test func secretsAreSealedAndOpenOnlyInTheirRow() throws {
        let folder = TemporaryFolder()
        let app = try #require(AppName("demo"))
        let deployment = try deployment(folder.data)
        _ = try deployment.addApp(app, settings: ["legacy-key=a secret of the login ladder"], at: 5)
        let first = try deployment.addRelease(draft(app, id: "r_1"), at: 6).release
        var second = try deployment.addRelease(draft(app, id: "r_2", version: "2.0"), at: 6).release
        #expect(try deployment.key(of: first).secret.copied == Array("secret of r_1".utf8))
        second.sealedSecret = first.sealedSecret
        #expect(throws: OperationalError.self) { try deployment.key(of: second) }
        for (name, bytes) in try folder.contents() {
            for text in ["secret of r_1", "a secret of the login ladder"] {
                #expect(bytes.range(of: Data(text.utf8)) == nil, "\(text) in \(name)")
            }
        }
    }

    @Test func publicKeysAreKeptAsWhatTheyAre() throws {
        let folder = TemporaryFolder()
        let app = try #require(AppName("demo"))
        let pair = try PrivateKey(random: .ed25519)
        let first = try deployment(folder.data)
        _ = try first.addApp(app, settings: [], at: 5)
        var pairDraft = try draft(app, id: "r_pair")
        pairDraft.publicKey = pair.publicKey
        _ = try first.addRelease(pairDraft, at: 6)
        let shared = try first.addRelease(draft(app, id: "r_shared", version: "2.0"), at: 6).release
        var misfit = try draft(app, id: "r_form", version: "3.0", scheme: .formMD5)
        misfit.publicKey = pair.publicKey
        #expect(throws: OperationalError.self) { try first.addRelease(misfit, at: 6) }

        let again = try deployment(folder.data)
        var release = try again.release(pairDraft.id)
        #expect(try again.key(of: release).publicKey?.der == pair.publicKey.der)
        #expect(try again.key(of: release).algorithm == .ed25519)
        #expect(try again.key(of: shared).publicKey == nil)
        // A secret put in the row of a public key, or back: neither opens.
        release.sealedSecret = shared.sealedSecret
        #expect(throws: OperationalError.self) { try again.key(of: release) }
    }

    @Test func oneAnswerKeyForAll() throws {
        let folder = TemporaryFolder()
        let app = try #require(AppName("demo"))
        let deployment = try deployment(folder.data)
        _ = try deployment.addApp(app, settings: [], at: 5)
        let keys = try ["1", "2"].map {
            try deployment.addRelease(draft(app, id: $0, version: $0), at: 6).answerKey
        }
        #expect(keys[0] == keys[1] && keys[0].count == 32)
    }

    @Test func whatIsTakenStaysAsItWas() throws {
        let folder = TemporaryFolder()
        let app = try #require(AppName("demo"))
        let deployment = try deployment(folder.data)
        _ = try deployment.addApp(app, settings: ["window=10s"], at: 5)
        #expect(throws: OperationalError.self) { try deployment.addApp(app, settings: [], at: 6) }
        #expect(try deployment.app(app).settings == ["routes": .text("/ session"), "window": .text("10s")])
        _ = try deployment.addRelease(draft(app, id: "r_1"), at: 6)
        #expect(throws: OperationalError.self) {
            try deployment.addRelease(draft(app, id: "r_1", version: "2"), at: 6)
        }
        #expect(throws: OperationalError.self) { try deployment.addRelease(draft(app, id: "r_2"), at: 6) }
        #expect(try deployment.store.releases(of: app).map(\.id.description) == ["r_1"])
        #expect(throws: OperationalError.self) {
            try deployment.setPolicy(["window=1s", "nonsense=1"], of: app)
        }
        #expect(try deployment.app(app).settings == ["routes": .text("/ session"), "window": .text("10s")])
    }
}

@Suite struct DataFolderTests {
    @Test("folders that cannot be one")
    func faults() throws {
        let folder = TemporaryFolder()
        let file = "\(folder.path)/file"
        #expect(FileManager.default.createFile(atPath: file, contents: Data()))
        for (path, word) in [
            (file, "not a folder"), ("\(folder.path)/a/b", "does not exist"),
            ("\(file)/x", "Not a directory"),
        ] {
            let fault = #expect(throws: OperationalError.self) { try DataFolder(path, absence: .create) }
            #expect(fault?.kind == .unreachable)
            #expect(fault?.message.contains(word) == true, "\(fault?.message ?? "")")
        }
        let absent = #expect(throws: OperationalError.self) {
            try DataFolder("\(folder.path)/none", absence: .fail)
        }
        #expect(absent?.kind == .unreachable)
        #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/none"))
    }

    @Test("a release of a name that tokens have is refused", arguments: ["s_1", "b_1", "l_1", "s_"])
    func reservedKeyIDs(_ id: String) throws {
        let folder = TemporaryFolder()
        let deployment = try deployment(folder.data)
        let app = try #require(AppName("demo"))
        _ = try deployment.addApp(app, settings: [], at: 5)
        let draft = try draft(app, id: id)
        let fault = #expect(throws: OperationalError.self) { try deployment.addRelease(draft, at: 6) }
        #expect(fault?.kind == .usage && fault?.message.contains("is a session's token") == true)
        for other in ["s", "s-1", "r_s_1", "x_1"] { #expect(KeyID(other)?.isReserved == false) }
    }
}
