import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire
import DatabaseFixture
import ScriptedClock
import StoreContract
import Testing

@testable import CountersignSQL

/// Changes that nodes must follow are counted and notified, and a change that a command makes waits for them.
@Suite(.enabled(if: TestDatabases.isThere, "no PostgreSQL server can be started"))
struct NodeTests {
    private let address: PostgreSQLAddress
    private let store: any Store
    private let channel: any NodeChannel
    private let shop: AppName

    init() throws {
        address = try #require(TestDatabases.shared).make()
        store = StorePlace.postgreSQL(address).open()
        try store.prepare()
        channel = try #require(StorePlace.postgreSQL(address).openChannel())
        shop = try #require(AppName("shop"))
        _ = try store.insert(App(name: shop, created: 1), recording: .counting)
    }

    private func node(
        _ id: String, lease: Int64 = 60_000, applied: Int64 = -1, guard name: String = "one"
    ) -> Node {
        Node(id: id, name: "node \(id)", replayGuard: name, lease: lease, applied: applied)
    }

    @Test func changesAreCountedAndNotified() throws {
        let contract = StoreContract(store)
        let account = try contract.added(contract.accountDraft("ada"))
        let own = node("a")
        #expect(try channel.wait(milliseconds: 0, alongside: -1), "a new connection may have missed some")
        let setting = StoredSetting.text("single")
        let cases: [(what: String, sessions: Int64, others: ClosedRange<Int64>, body: () throws -> Void)] = [
            ("sign-up", 0, 0...0, { _ = try contract.added(contract.accountDraft("bob")) }),
            ("login", 1, 0...0, { _ = try contract.open(StoreContract.session(1, of: account), .unlimited) }),
            (
                "logout", 1, 0...0,
                {
                    _ = try store.end(
                        .all, with: SessionTermination(.signedOut, at: 9), recording: .counting)
                }
            ),
            (
                "policy", 0, 1...9,
                {
                    _ = try store.change(
                        shop, applying: [(name: "slots", setting: setting)], recording: .counting)
                }
            ),
            (
                "lock", 0, 1...9,
                {
                    _ = try store.change(
                        account.number, if: .anything, applying: .lock, at: 9, recording: .counting)
                }
            ),
            ("published pins", 0, 1...9, { try store.set(.pinManifests, to: [1]) }),
            ("counts of requests", 0, 0...0, { try store.forgetMeter(before: 1) }),
        ]
        for each in cases {
            let before = try channel.look(as: own)
            #expect(try !channel.wait(milliseconds: 0, alongside: -1), "\(each.what)")
            try each.body()
            let isHinted = try channel.wait(milliseconds: 500, alongside: -1)
            let after = try channel.look(as: own)
            let others = after.generation - before.generation
            #expect(each.others.contains(others), "\(each.what): \(others)")
            #expect(after.change - before.change == each.sessions + others, "\(each.what)")
            #expect(isHinted == (after != before), "\(each.what)")
        }
    }

    @Test func aViewHasTheOtherLiveNodes() throws {
        let own = node("a")
        let change = try channel.look(as: own).change
        _ = try channel.renew(own)
        #expect(try channel.look(as: own).others == 0)
        #expect(try channel.look(as: own).confirmed == nil)
        _ = try channel.renew(node("b", applied: 1))
        _ = try channel.renew(node("c", guard: "two"))
        _ = try channel.renew(node("d", lease: 1, applied: -9))
        // The lease of d has lapsed by then.
        #expect(try !channel.wait(milliseconds: 20, alongside: -1))
        let view = try channel.look(as: own)
        #expect((view.others, view.confirmed) == (2, -1))
        let others = try channel.others(of: own)
        #expect(others.filter(\.isLive).filter { !own.differences(from: $0).isEmpty }.map(\.id) == ["c"])
        try channel.confirm(change, of: node("c"))
        #expect(try channel.look(as: own).confirmed == min(1, change))
        let listing = try store.nodes()
        #expect(listing.nodes.map(\.isLive) == [true, true, true, false])
        #expect(listing.change == change)
        try channel.remove(node("b"))
        #expect(try channel.look(as: own).others == 1)
        // A node that was forgotten enters again with its next lease.
        try channel.confirm(change, of: node("b"))
        #expect(try channel.look(as: own).others == 1)
        _ = try channel.renew(node("b", applied: change))
        #expect(try channel.look(as: own).others == 2)
    }

    @Test func aNodeEntersUnlessALiveOneDiffers() throws {
        func node(_ id: String, prefix: String, lease: Int64 = 60_000) -> Node {
            Node(
                id: id, name: "node \(id)", replayGuard: "postgres", lease: lease,
                settings: SharedSettings(["prefix": prefix]))
        }
        func enter(_ own: Node) throws -> [String]? {
            switch try channel.enter(own, unless: { !own.differences(from: $0).isEmpty }) {
            case .entered: nil
            case .refused(let others): others.map(\.id)
            }
        }
        #expect(try enter(node("a", prefix: "/a")) == nil)
        #expect(try enter(node("b", prefix: "/a")) == nil)
        #expect(try enter(node("c", prefix: "/c")) == ["a", "b"])
        #expect(try store.nodes().nodes.map(\.id) == ["a", "b"])
        // The lock is free again.
        let other = try #require(StorePlace.postgreSQL(address).openChannel())
        #expect(try other.enter(node("d", prefix: "/a"), unless: { _ in false }) != .refused([]))
        // A refused start is listed once, and no change waits for it.
        var refused = node("e", prefix: "/e")
        refused.refusal = "--prefix"
        try channel.list(refused: refused)
        (refused.id, refused.refusal) = ("f", "--prefix again")
        refused.name = "node e"
        try channel.list(refused: refused)
        let listing = try store.nodes()
        #expect(listing.nodes.map(\.refusal) == ["", "", "", "--prefix again"])
        #expect(listing.nodes.map(\.isLive) == [true, true, true, false])
        #expect(try channel.look(as: node("a", prefix: "/a")).others == 2)
        for id in ["a", "b", "d"] { try channel.remove(node(id, prefix: "/a")) }
        #expect(try enter(node("c", prefix: "/c")) == nil)
    }

    @Test func aCommandWaitsForTheNodes() throws {
        let commands = StorePlace.postgreSQL(address).open(acknowledging: .followed)
        func change() throws { try commands.set(.pinManifests, to: [1]) }
        try change()
        // A node that is silent is waited for until its lease has lapsed.
        _ = try channel.renew(node("a", lease: 1_000))
        try change()
        #expect(try store.nodes().nodes.map(\.isLive) == [false])
        // One that follows is not waited for.
        let number = try channel.look(as: node("a")).change
        _ = try channel.renew(node("b", applied: number + 100))
        try change()
        // Nor does a change wait that no node has to follow.
        _ = try channel.renew(node("b", applied: try channel.look(as: node("a")).change))
        try commands.forgetMeter(before: 1)
        // This one would be waited for.
        _ = try channel.renew(node("c", lease: 1_000))
        let listing = try store.nodes()
        #expect(listing.unconfirmed(of: listing.change).map(\.id) == ["c"])
    }
}
