import CountersignWire

/// A MAC that is compared with `==`, which ends at the first byte that differs, gives itself away a byte at a time.
package struct MACTiming: Attack {
    package let name: AttackName = "mac-timing"
    package let column = Column.tamper
    package let sentence =
        "Finds the first two bytes of the right MAC for a request of his own by the time that refusals take."

    /// Enough to tell what is found from what is guessed: one in 65,536 is luck.
    private static let wanted = 2

    /// For schemes whose requests bear one: the MAC is looked at before.
    private static let madeUp = CapturedToken(token: "b_" + String(repeating: "A", count: 43), userID: "1")

    package init() {}

    package func exemption(of row: RowProfile) -> String? {
        row.signsRequests ? nil : "the scheme has no MAC"
    }

    package func run(on stage: Stage) async throws -> Outcome {
        let victim = try await stage.newVictim()
        let order = Order(payer: victim.name, payee: stage.thief, amount: 100)
        // The lab signs it, so that it knows what is to be found; the attacker sees the request without its MAC.
        let signed =
            stage.craft.transfer(order, token: nil, key: stage.appKey)
            ?? stage.craft.transfer(order, token: MACTiming.madeUp, key: stage.appKey)
        guard let signed, let place = MACPlace(in: signed)
        else { throw StageFault("no request with a MAC could be made") }
        stage.note(
            .attacker,
            "sends the request of his choice with one guess at its MAC after another, and measures how long each refusal takes",
            showing: String(
                decoding: place.request(bearing: [UInt8](repeating: 0, count: place.mac.count)), as: UTF8.self))
        let found = try await search(place, by: signed.method, stage)
        let told = Hex.encode(found.span)
        stage.note(.attacker, "takes the first bytes to be \(told)")
        guard found == Array(place.mac.prefix(MACTiming.wanted)) else {
            return .failed("the time of a refusal says nothing about the MAC: what it seemed to say, \(told), is wrong")
        }
        return .succeeded("the time of refusals gave away the first \(MACTiming.wanted) bytes: \(told)")
    }

    /// On one connection and one thread: what is measured is the server.
    private func search(_ place: MACPlace, by method: String, _ stage: Stage) async throws -> [UInt8] {
        let client = try stage.network.way()
        return try await Blocking.run {
            let connection = try KeptConnection(client)
            let first = try connection.ask(
                place.request(bearing: [UInt8](repeating: 0, count: place.mac.count)), method: method)
            stage.note(.server, "refuses", showing: first.shown)
            let search = ByteByTime(length: place.mac.count) { guess throws(NetworkProblem) in
                let request = place.request(bearing: guess)
                let start = ContinuousClock.now
                _ = try connection.ask(request, method: method)
                return ContinuousClock.now - start
            }
            let found = try search.first(MACTiming.wanted)
            // It must have been the MAC that was looked at, to the end: the right one is told something else, and a wrong one still the same.
            let right = try connection.ask(place.request(bearing: place.mac), method: method)
            let wrong = try connection.ask(
                place.request(bearing: [UInt8](repeating: 0, count: place.mac.count)), method: method)
            guard !right.isSame(as: first) else {
                throw StageFault("the server says the same to the right MAC: \(right.text)")
            }
            guard wrong.isSame(as: first), !right.isLimit, right.fields["countersign-refusal"] != "too-many-attempts",
                right.status != 503
            else {
                throw StageFault("the server came to refuse something else than the MAC: \(right.text), \(wrong.text)")
            }
            return found
        }
    }
}

extension RawResponse {
    /// Whether it is the same refusal, whatever it says behind its code.
    fileprivate func isSame(as other: RawResponse) -> Bool {
        // A proxy that asks shows a page of its own, and our code in a field.
        status == other.status && text.prefix(40) == other.text.prefix(40)
            && fields["countersign-refusal"] == other.fields["countersign-refusal"]
    }
}
