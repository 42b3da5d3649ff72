import CountersignAuthority
import CountersignGate
import CountersignWire
import Testing

/// Several changes, made durable at once.
extension StoreContract {
    typealias Change = (any Store) throws(Fault) -> Void

    private static func adding(_ name: AppName, then fault: Fault? = nil) -> Change {
        func change(_ store: any Store) throws(Fault) {
            guard try store.insert(App(name: name, created: 1), recording: .counting) == .yes,
                try store.app(name) != nil
            else { throw Fault(.failed, "it does not see its own change") }
            if let fault { throw fault }
        }
        return change
    }

    private static func setting(_ value: [UInt8], then fault: Fault? = nil) -> Change {
        func change(_ store: any Store) throws(Fault) {
            try store.set(.opaqueKeys, to: value)
            if let fault { throw fault }
        }
        return change
    }

    private static func nesting(_ changes: [Change], expecting faults: [Fault?], then fault: Fault) -> Change {
        func change(_ store: any Store) throws(Fault) {
            let found = try store.together(changes)
            guard found == faults else { throw Fault(.failed, "\(found)") }
            throw fault
        }
        return change
    }

    func together() throws {
        let names = try ["one", "two", "three"].map { try #require(AppName("together-\($0)")) }
        let second = Fault(.usage, "the second")
        let changes = [
            Self.adding(names[0]), Self.adding(names[1], then: second), Self.adding(names[2]),
        ]
        let before = (revision: try make().revision(), audit: try make().auditEnd().last)
        let none = try make().together([])
        #expect(none.isEmpty)
        let faults = try make().together(changes)
        #expect(faults == [nil, second, nil])
        #expect(try make().app(names[0]) != nil && make().app(names[2]) != nil)
        #expect(try make().app(names[1]) == nil, "the one that failed left something behind")
        #expect(try make().revision() == before.revision + 2 && make().auditEnd().last == before.audit + 2)

        let (inner, outer) = (Fault(.failed, "inner"), Fault(.failed, "outer"))
        try make().set(.opaqueKeys, to: [7])
        let nested = Self.nesting(
            [Self.setting([8]), Self.setting([9], then: inner)], expecting: [nil, inner], then: outer)
        let undone = try make().together([nested])
        #expect(undone == [outer])
        #expect(try make().value(of: .opaqueKeys) == [7])
    }
}
