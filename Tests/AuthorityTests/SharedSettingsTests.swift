import CountersignAuthority
import CountersignSQL
import CountersignWire
import Foundation
import Testing

/// Which values of two nodes differ, and what the store records of the values that all nodes have in common.
@Suite struct SharedSettingsTests {
    private func node(
        _ name: String, _ settings: [String: String] = [:], guard guarding: String = "redis 1f",
        lease: Int64 = 5_000, silence: Int64 = 0, refusal: String = ""
    ) -> Node {
        Node(
            id: name, name: name, replayGuard: guarding, lease: lease, silence: silence,
            settings: SharedSettings(settings), refusal: refusal)
    }

    @Test(
        "whether a request that one guard has seen, another may accept",
        arguments: [
            ("redis 1f", "redis 1f", false), ("redis 1f", "redis 2e", true), ("redis 1f", "redis", false),
            ("redis", "redis", false), ("redis", "postgres", true), ("postgres", "postgres", false),
            ("file host 1 2", "file host 1 2", false), ("file host 1 2", "file other 1 2", true),
            ("file host 1 2", "postgres", true), ("redis 1f away", "redis 1f", false),
            ("redis 1f away", "redis 2e away", true),
        ])
    func guards(_ row: (one: String, other: String, differs: Bool)) {
        let (one, other) = (NodeReplayGuard(text: row.one), NodeReplayGuard(text: row.other))
        #expect(one.differs(from: other) == row.differs && other.differs(from: one) == row.differs)
        #expect(one.text == row.one && one.isAway == row.one.hasSuffix("away"))
    }

    private struct Nodes: NodeStore {
        let all: [Node]

        func nodes() -> NodeRoster { NodeRoster(nodes: all) }
    }

    @Test func aRivalIsALiveNodeThatReachesAnotherGuard() throws {
        func rival(_ nodes: Node..., isStarting: Bool = false) throws -> String? {
            try Nodes(all: nodes).rival(
                of: NodeReplayGuard(text: "redis 1f"), besides: ["own"], isStarting: isStarting)?.name
        }
        let other = node("other", guard: "redis 2e")
        #expect(try rival(node("same"), node("own", guard: "redis 2e"), other) == "other")
        #expect(try rival(node("lapsed", guard: "redis 2e", silence: 9_000)) == nil)
        #expect(try rival(node("starting", guard: "redis")) == nil)
        #expect(try rival(node("away", guard: "redis 2e away")) == nil)
        #expect(try rival(node("lapsed", guard: "redis 2e", silence: 9_000), isStarting: true) == nil)
    }

    @Test func differencesNameSettingValuesAndNode() {
        let own = node("a", ["prefix": "/a", "login-account": "10/60s", "new": "1"])
        let other = node("b", ["prefix": "/a", "login-account": "60/1s", "old": "1"], guard: "redis 2e")
        #expect(
            own.differences(from: other).map(\.text) == [
                "--replay is `redis 1f` here and `redis 2e` at node b",
                "--login-account is `10/60s` here and `60/1s` at node b",
            ])
        #expect(own.differences(from: own).isEmpty)
    }

    @Test func disagreementsAreOfLiveNodes() {
        let roster = NodeRoster(nodes: [
            node("a", ["prefix": "/a"]), node("b", ["prefix": "/b"]), node("c", ["prefix": "/a"]),
            node("d", ["prefix": "/d"], silence: 9_000), node("e", ["prefix": "/e"], refusal: "--prefix"),
        ])
        #expect(roster.disagreements.map(\.text) == ["--prefix: `/a` at a, c; `/b` at b"])
        #expect(NodeRoster(nodes: [node("a", ["prefix": "/a"])]).disagreements.isEmpty)
    }

    @Test func aTextIsReadBack() {
        let settings = SharedSettings(["a": "x=y", "b": "", "c": "1\n2"])
        #expect(settings.text == "a=x=y\nb=\nc=1 2")
        #expect(SharedSettings(text: settings.text[...]) == settings)
    }

    @Test func aNodeIsSeenToLiveByItsRenewal() {
        var renewals = NodeRenewals()
        #expect(renewals.firstRenewed(among: [node("a", silence: 10)]) == nil)
        #expect(renewals.firstRenewed(among: [node("a", silence: 60), node("b", silence: 5)]) == nil)
        #expect(renewals.firstRenewed(among: [node("a", silence: 110), node("b", silence: 1)])?.name == "b")
    }

    @Test func theRecordFollowsStartsAndAnnouncements() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("cs-\(UUID().uuidString)")
            .path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let data = try DataFolder(folder, absence: .create)
        let deployment = try Deployment(
            folder: data, store: StorePlace.sqlite(path: data.database).open(), environment: [:])
        let (old, new) = (SharedSettings(["prefix": "/a"]), SharedSettings(["prefix": "/b"]))
        #expect(try deployment.adopt(old, beside: []).isEmpty)
        #expect(try deployment.sharedSettings() == SharedSettingsRecord(current: old))
        // A lone node changes a setting by its start.
        #expect(try deployment.adopt(new, beside: []) == ["prefix": "/a"])
        #expect(try deployment.sharedSettings().current == new)
        // Several change it one after the other.
        try deployment.announce(old)
        let permitted = try deployment.sharedSettings()
        let difference = NodeDifference(setting: "prefix", value: "/a", node: "b", other: "/b")
        #expect(permitted.permits(difference))
        #expect(!permitted.permits(.init(setting: "prefix", value: "/c", node: "b", other: "/b")))
        #expect(!permitted.permits(.init(setting: "other", value: "/a", node: "b", other: "/b")))
        _ = try deployment.adopt(old, beside: [node("b", ["prefix": "/b"])])
        #expect(try deployment.sharedSettings() == permitted, "a node has the former value still")
        _ = try deployment.adopt(old, beside: [node("b", ["prefix": "/a"])])
        #expect(try deployment.sharedSettings() == SharedSettingsRecord(current: old))
        let record = try #require(try deployment.auditRecords(last: 1).first).record
        #expect(String(decoding: record, as: UTF8.self).contains("nodes.change"))
    }
}
