import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignHandshake

/// What both ends compute alike, and that no part of it can be another part of something else.
@Suite struct TranscriptTests {
    /// Two points that are none; nothing here asks the curve.
    private static func point(_ byte: UInt8) -> P256Point? {
        P256Point([4] + [UInt8](repeating: byte, count: 64))
    }

    private func binding(
        app: String = "demo", account: String = "alice", release: String = "r_1", signing: UInt8 = 1,
        agreement: UInt8 = 2, kind: Device.Class = .phone, name: String = "a phone"
    ) throws -> LoginBinding {
        LoginBinding(
            app: app, account: try AccountName(normalizing: account), release: release,
            device: Device(
                signingKey: try #require(Self.point(signing)),
                agreementKey: try #require(Self.point(agreement)),
                kind: kind, name: try #require(Device.Name(name))))
    }

    @Test func aRefreshIsSpelledAsTheProtocolSays() throws {
        let bytes = [UInt8](1...16)
        let found = SessionID(bytes.span)
        let id = try #require(found)
        let transcript = RefreshTranscript(
            app: "demo", release: "r_1", token: SessionToken(id: id, epoch: 258), attempt: [9, 9], time: 3,
            counter: 513, nonce: [7, 7, 7])
        func number(_ low: [UInt8]) -> [UInt8] { [UInt8](repeating: 0, count: 8 - low.count) + low }
        let expected =
            Array("countersign/1 refresh-2\0".utf8) + number([4]) + Array("demo".utf8) + number([3])
            + Array("r_1".utf8)
            + number([16]) + [UInt8](1...16) + number([1, 2]) + number([2]) + [9, 9] + number([3])
        let tail = number([2, 1]) + number([3]) + [7, 7, 7] + number([5]) + Array("renew".utf8)
        #expect(transcript.bytes == expected + tail)
        var report = transcript
        report.purpose = .reportReuse
        #expect(report.bytes.suffix(20) == number([12]) + Array("report-reuse".utf8))
    }

    @Test func everyPartOfALoginIsBound() throws {
        let all = [
            try binding(), try binding(app: "demo2"), try binding(account: "bob"),
            try binding(release: "r_2"),
            try binding(signing: 3), try binding(agreement: 3), try binding(signing: 2, agreement: 1),
            try binding(kind: .tablet), try binding(name: "another"),
        ]
        func finish(_ binding: LoginBinding, _ purpose: LoginBinding.Purpose = .login) -> [UInt8] {
            binding.finishTranscript(purpose, loginID: [1], ke1: [2], ke2: [3], ke3: [4])
        }
        #expect(Set(all.map { finish($0) }).count == all.count)
        #expect(Set(all.map { $0.startProof(ke1: [1], time: 5) }).count == all.count)
        #expect(finish(all[0]) != finish(all[0], .passwordChange))
        // The context has the release and the device; app and account are OPAQUE's own names.
        #expect(Set(all.compactMap { $0.context.map { "\($0)" } }).count == all.count - 2)
    }

    /// Where a device says that it keeps its keys is bound by the finish of a login alone, so that an end
    /// that does not know the value computes the same.
    @Test func whereKeysAreKeptIsBoundByTheFinishAlone() throws {
        let silent = try binding()
        func finish(_ storage: KeyStorage?, _ purpose: LoginBinding.Purpose = .login) -> [UInt8] {
            var device = silent.device
            device.keyStorage = storage
            let binding = LoginBinding(
                app: silent.app, account: silent.account, release: silent.release, device: device)
            #expect(binding.startProof(ke1: [1], time: 5) == silent.startProof(ke1: [1], time: 5))
            #expect(binding.context.map { "\($0)" } == silent.context.map { "\($0)" })
            return binding.finishTranscript(purpose, loginID: [1], ke1: [2], ke2: [3], ke3: [4])
        }
        #expect(
            Set(KeyStorage.allCases.map { finish($0) } + [finish(nil)]).count == KeyStorage.allCases.count + 1
        )
        #expect(finish(.tpm) == finish(nil) + [0, 0, 0, 0, 0, 0, 0, 3] + Array("tpm".utf8))
        #expect(finish(.tpm, .passwordChange) == finish(nil, .passwordChange))
    }

    @Test func partsDoNotRunIntoEachOther() throws {
        let login = try binding()
        let one = login.finishTranscript(.login, loginID: [1, 2], ke1: [3], ke2: [], ke3: [])
        let other = login.finishTranscript(.login, loginID: [1], ke1: [2, 3], ke2: [], ke3: [])
        #expect(one != other)
    }

    @Test(
        "device names",
        arguments: [
            ("a", true), ("Anna's phone", true), ("é", true), (String(repeating: "x", count: 64), true),
            ("", false),
            (String(repeating: "x", count: 65), false), ("a\nb", false), ("a\u{2028}b", false), ("\0", false),
        ])
    func names(_ row: (text: String, isGood: Bool)) { #expect((Device.Name(row.text) != nil) == row.isGood) }
}
