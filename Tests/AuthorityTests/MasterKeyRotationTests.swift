import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignAuthority

/// The rotation itself; `Tests/Faults/test_master_key.py` kills it, under a running server.
@Suite struct MasterKeyRotationTests {
    private let folder = TemporaryFolder()
    private let app: AppName

    init() throws { app = try #require(AppName("demo")) }

    private var nextFile: String { "\(folder.data)/master.key.next" }

    /// A deployment with a sealed setting, a release and the deployment's own keys.
    private func filled() throws -> Deployment {
        let made = try deployment(folder.data)
        _ = try made.addApp(app, settings: ["legacy-key=the app's key"], at: 5)
        _ = try made.addRelease(draft(app, id: "r_1"), at: 6)
        _ = try made.rotateAssertionKeys(at: 7)
        _ = try made.rotateAnswerKey(.evenIfReleasesLackTheNextKey, at: 7)
        _ = (try made.opaqueKeys(), try made.registrationScalars(), try made.bearerKey())
        try made.rotateRegistrationKey(at: 7)
        return made
    }

    /// A value that opens under no key.
    private var altered: String { "x'01\(String(repeating: "00", count: 72))'" }

    private func rotation(of deployment: Deployment) -> MasterKeyRotation {
        MasterKeyRotation(of: deployment, pausing: { _ in })
    }

    @Test("a store is of a key only while no other one is taking its place")
    func whatABackupIsSealedUnder() throws {
        let made = try filled()
        let former = try made.keyForBackup()
        #expect(try made.isSealed(made.store, under: former))
        var during: [Bool] = []
        _ = try rotation(of: made).run { _ in
            during.append((try? made.isSealed(made.store, under: former)) ?? true)
        }
        #expect(during.contains(false))
        #expect(try !made.isSealed(made.store, under: former))
        #expect(try made.isSealed(made.store, under: made.keyForBackup()))
    }

    @Test("all of it opens under the new key, in this process and in one that knows only that")
    func everything() throws {
        let made = try filled()
        let (answer, assertion) = (try made.answerSeeds(), try made.assertionSeeds())
        let registration = try made.registrationScalars().scalars
        for _ in 0..<3 {
            let outcome = try rotation(of: made).run()
            #expect(outcome.left == 0 && outcome.sealed == 7)
            for each in [made, try deployment(folder.data)] {
                let answers = try each.answerSeeds()
                #expect(answers.current.copied == answer.current.copied)
                #expect(answers.next.copied == answer.next.copied && answers.nextMade == answer.nextMade)
                let scalars = try each.registrationScalars().scalars
                #expect(scalars.current.copied == registration.current.copied)
                #expect(scalars.former?.scalar.copied == registration.former?.scalar.copied)
                #expect(scalars.former?.replaced == 7)
                let seeds = try each.assertionSeeds()
                #expect(seeds.current.copied == assertion.current.copied && seeds.previous != nil)
                _ = (try each.opaqueKeys(), try each.bearerKey())
                _ = try each.key(of: #require(try each.store.releases(of: app).first))
                #expect(try each.verifyRows().findings == [] && each.verifyAudit().findings == [])
                #expect(each.masterKey.keys.next == nil)
            }
        }
        #expect(!FileManager.default.fileExists(atPath: nextFile))
    }

    @Test("what was sealed under the former key just before is refused, and then sealed again")
    func staleSeal() throws {
        let other = try filled()
        let place = SealBinding.bearerKey
        let stale = other.seal(Secret(random: 32), as: place)
        var met = false
        _ = try rotation(of: deployment(folder.data)).run { stage in
            guard case .began(let isContinued, let values) = stage else { return }
            met = true
            #expect(!isContinued && values == 2)
            let fault = #expect(throws: OperationalError.self) { try other.store.set(.bearerKey, to: stale) }
            #expect(fault?.kind == .unreachable && fault?.message.contains("is being replaced") == true)
            #expect(throws: Never.self) {
                try other.store.set(.bearerKey, to: other.seal(Secret(random: 32), as: place))
            }
        }
        #expect(met)
        _ = try other.bearerKey()
        #expect(throws: OperationalError.self) { try other.store.set(.bearerKey, to: stale) }
    }

    @Test("what a process keeps in memory opens as before")
    func memory() throws {
        let made = try filled()
        let keys = try AccountKeys(made)
        _ = try rotation(of: deployment(folder.data)).run()
        let name = try AccountName(normalizing: "nobody")
        #expect(throws: Never.self) { try keys.record(of: nil, named: name, in: app) }
        // Without the look that another process's rotation prompts, the next step has the former key alone.
        #expect(made.seal(Secret(random: 32), as: .bearerKey).first == SealSlot.first.next.rawValue)
    }

    @Test("a value that does not open keeps the former key, unless it is given up")
    func alteredValue() throws {
        let made = try filled()
        made.store.close()
        try execute(sql: "UPDATE app_setting SET sealed = \(altered) WHERE sealed IS NOT NULL", in: folder)
        let fault = #expect(throws: OperationalError.self) {
            try rotation(of: deployment(folder.data)).run()
        }
        #expect(fault?.message.contains("1 values open under neither key") == true)
        #expect(FileManager.default.fileExists(atPath: nextFile))
        let outcome = try rotation(of: deployment(folder.data)).run(unopened: .giveUp)
        #expect(outcome.left == 1 && outcome.sealed == 5)
        #expect(try deployment(folder.data).verifyRows().findings.count == 1)
    }

    @Test("an altered key of the deployment stops it before anything is lost")
    func alteredKey() throws {
        let made = try filled()
        made.store.close()
        try execute(sql: "UPDATE meta SET value = \(altered) WHERE name = 'opaque-keys'", in: folder)
        let opened = try deployment(folder.data)
        let fault = #expect(throws: OperationalError.self) { try rotation(of: opened).run() }
        #expect(fault?.message.contains("opaque-keys") == true)
        #expect(FileManager.default.fileExists(atPath: nextFile))
        // The other keys, and what is known of them, are as before.
        #expect(try opened.verifyRows().findings.count == 1)
    }

    @Test("interrupted, it needs both keys, and goes on")
    func interrupted() throws {
        try filled().store.close()
        let data = try DataFolder(folder.data, absence: .fail)
        let failing = FailingStore(StorePlace.sqlite(path: data.database).open())
        let broken = try deployment(folder.data, store: failing)
        #expect(throws: OperationalError.self) {
            try rotation(of: broken).run { _ in failing.fails = true }
        }
        failing.close()
        let both = try deployment(folder.data)
        #expect(both.masterKey.keys.next != nil)
        _ = (try both.answerKey(), try both.opaqueKeys())
        both.store.close()
        try FileManager.default.moveItem(atPath: nextFile, toPath: "\(nextFile).away")
        let fault = #expect(throws: OperationalError.self) { try deployment(folder.data) }
        #expect(fault?.message.contains("its successor is missing") == true)
        try FileManager.default.moveItem(atPath: "\(nextFile).away", toPath: nextFile)
        var wasContinued = false
        let outcome = try rotation(of: deployment(folder.data)).run {
            if case .began(let isContinued, _) = $0 { wasContinued = isContinued }
        }
        #expect(wasContinued && outcome.left == 0 && !FileManager.default.fileExists(atPath: nextFile))
        _ = try deployment(folder.data).opaqueKeys()
    }
}
