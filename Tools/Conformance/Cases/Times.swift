import CountersignLab
import CountersignWire
import Glibc

extension ConformanceCase {
    static let times: [ConformanceCase] = [
        ConformanceCase(
            "wrong-clock", section: "Time",
            requirement:
                "A port whose clock is wrong learns the server's time from a signed answer, and sends the "
                + "request once more, signed anew."
        ) { (trial) throws(ConformanceError) in
            for offset in [3_600, -7_200] {
                trial.front.clearExchanges()
                let port = try trial.port(clockOffset: offset)
                if offset > 0 { try trial.signUp(port) }
                try trial.logIn(port)
                try trial.call(port)
                try expectOffsetWasApplied(offset, in: trial)
                let signed = trial.front.exchanges.map(\.request).filter { $0.path == "/hello" }.compactMap(
                    RequestSignature.init)
                try expectRecentCreation(of: signed, in: trial)
                for path in Set(trial.front.exchanges.map(\.request.path)) {
                    let count = trial.front.exchanges.count { $0.request.path == path }
                    try trial.expect(
                        count <= 2, that: "No request is sent more than twice.",
                        observed: "\(path) is sent \(count) times")
                }
            }
        },
        ConformanceCase(
            "forged-time", section: "Time",
            requirement:
                "The time is not taken from a `stale` that is not signed, or is signed by a stranger."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            let (key, now) = (try Forgery.stranger(), trial.now)
            for isSigned in [false, true] {
                trial.front.intercept("GET", path: "/hello", times: 2) { (request, _) in
                    let refusal = Forgery.refusal(
                        401, code: "stale", members: [("time", .integer(now + 86_400))])
                    return .answer(
                        isSigned ? Forgery.signed(refusal, to: request, by: key, at: now) : refusal)
                }
                try trial.tryCall(port)
                trial.front.removeRules()
                try trial.call(port)
                try expectRecentCreation(
                    of: trial.front.exchanges.map(\.request).compactMap(RequestSignature.init), in: trial)
            }
        },
        ConformanceCase(
            "late-time", section: "Time",
            requirement: "The time is not taken from an answer that came more than 5 s after its question."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.port(clockOffset: 3_600)
            trial.front.intercept("POST", path: Trial.own("/registration/start")) {
                (request, forward) throws(NetworkError) in
                let answer = try forward(request)
                sleep(6)
                return .answer(answer)
            }
            _ = try port.act("sign-up", with: trial.credentials)
            try trial.expectRulesUsed()
            let following = trial.front.exchanges.drop { $0.request.path != Trial.own("/registration/start") }
                .dropFirst()
            guard let next = following.first?.request, next.path != Trial.own("/time"),
                let created = RequestSignature(next)?.created
            else { return }
            try trial.expect(
                abs(created - trial.now) > 1_800,
                that: "The next request still has the time of the device's clock.",
                observed: "its `created` is off by \(created - trial.now) s")
        },
    ]

    /// A port that knows no other clock than the machine's has not shown anything.
    private static func expectOffsetWasApplied(_ offset: Int, in trial: Trial) throws(ConformanceError) {
        let first = trial.front.exchanges.first { exchange in exchange.request.path != Trial.own("/time") }
        let asked = trial.front.exchanges.first?.request.path == Trial.own("/time")
        let off = first.flatMap { RequestSignature($0.request)?.created.map { $0 - trial.now } } ?? 0
        try trial.expect(
            asked || abs(Int(off) - offset) < 600,
            that: "The device's clock is off by `clock_offset`, \(offset) s.",
            observed: "the first request's `created` is off by \(off) s, and the time was not asked for")
    }
}
