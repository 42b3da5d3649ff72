import CountersignAuthority
import CountersignGate
import CountersignWire
import Testing

/// Several changes, made durable at once.
extension StoreContract {
    package typealias Change = (any Store) throws(OperationalError) -> Void

    private static func adding(_ name: AppName, then fault: OperationalError? = nil) -> Change {
        func change(_ store: any Store) throws(OperationalError) {
            guard try store.insert(App(name: name, created: 1), recording: .counting) == .yes,
                try store.app(name) != nil
            else { throw OperationalError(.failed, message: "it does not see its own change") }
            if let fault { throw fault }
        }
        return change
    }

    private static func setting(_ value: [UInt8], then fault: OperationalError? = nil) -> Change {
        func change(_ store: any Store) throws(OperationalError) {
            try store.set(.opaqueKeys, to: value)
            if let fault { throw fault }
        }
        return change
    }

    private static func nesting(
        _ changes: [Change], expecting faults: [OperationalError?], then fault: OperationalError
    ) -> Change {
        func change(_ store: any Store) throws(OperationalError) {
            let found = try store.applyTogether(changes)
            guard found == faults else { throw OperationalError(.failed, message: "\(found)") }
            throw fault
        }
        return change
    }

    package func together() throws {
        let names = try ["one", "two", "three"].map { try #require(AppName("together-\($0)")) }
        let second = OperationalError(.usage, message: "the second")
        let changes = [
            Self.adding(names[0]), Self.adding(names[1], then: second), Self.adding(names[2]),
        ]
        let before = (revision: try make().revision(), audit: try make().auditEnd().last)
        let none = try make().applyTogether([])
        #expect(none.isEmpty)
        let faults = try make().applyTogether(changes)
        #expect(faults == [nil, second, nil])
        #expect(try make().app(names[0]) != nil && make().app(names[2]) != nil)
        #expect(try make().app(names[1]) == nil, "the one that failed left something behind")
        #expect(try make().revision() == before.revision + 2 && make().auditEnd().last == before.audit + 2)

        let (inner, outer) = (
            OperationalError(.failed, message: "inner"), OperationalError(.failed, message: "outer")
        )
        try make().set(.opaqueKeys, to: [1, 7])
        let nested = Self.nesting(
            [Self.setting([1, 8]), Self.setting([1, 9], then: inner)], expecting: [nil, inner], then: outer)
        let undone = try make().applyTogether([nested])
        #expect(undone == [outer])
        #expect(try make().value(of: .opaqueKeys) == [1, 7])
    }
}
