import CountersignAuthority

/// Several openings of one store, used in turn, so that each call reads what another opening wrote. One of
/// them is replaced now and then: to open a store costs a hundred times as much as a call.
final class StoreOpenings {
    private static let count = 3
    private static let callsOfAnOpening = 20

    private let open: () throws -> any Store
    private var stores: [any Store] = []
    private var calls = 0

    init(open: @escaping () throws -> any Store) { self.open = open }

    func next() throws -> any Store {
        defer { calls += 1 }
        if stores.count < Self.count {
            stores.append(try open())
        } else if calls % Self.callsOfAnOpening == 0 {
            stores[calls / Self.callsOfAnOpening % Self.count] = try open()
        }
        return stores[calls % Self.count]
    }
}
