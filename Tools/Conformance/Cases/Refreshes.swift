import CountersignLab
import CountersignSeal
import CountersignWire
import Glibc

extension ConformanceCase {
    private static let route = Trial.own("/token")

    static let refreshes: [ConformanceCase] = [
        ConformanceCase(
            "refresh", section: "Refresh",
            requirement: "A refresh leads to the next epoch, whose key signs the calls that follow."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort(of: .shortLived)
            for epoch in 1...3 {
                try port.done("refresh")
                try trial.call(port)
                let keyID = try signature(of: "GET", path: "/hello", in: trial).keyID ?? ""
                try trial.expect(
                    keyID.hasSuffix(".\(epoch)"),
                    that: "After refresh \(epoch) calls are signed under epoch \(epoch).",
                    observed: "the keyid is \(keyID)")
            }
            let attempts = Set(trial.requests("POST", path: route).map { $0.bodyText("attempt") ?? "" })
            try trial.expect(
                attempts.count == 3, that: "Each refresh is another attempt.",
                observed: "\(attempts.count) attempts for 3 refreshes")
        },
        ConformanceCase(
            "expired-token", section: "Refresh",
            requirement: "A call that is refused as `token-expired` leads to a refresh, and is sent again."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort(of: .shortLived)
            usleep(4_600_000)
            try trial.call(port)
            let count = trial.requests("POST", path: route).count
            try trial.expect(count == 1, that: "One refresh is sent.", observed: "\(count) were sent")
        },
        ConformanceCase(
            "lost-refresh-request", section: "Refresh",
            requirement: "A refresh that did not arrive is sent again: the same attempt, at another time."
        ) { (trial) throws(ConformanceError) in
            try expectRefreshRecovers(trial) { (_, _) in .cut }
        },
        ConformanceCase(
            "lost-refresh-answer", section: "Refresh",
            requirement:
                "A refresh whose answer was lost is sent again: the same attempt, at another time. Another "
                + "attempt is taken for theft."
        ) { (trial) throws(ConformanceError) in
            try expectRefreshRecovers(trial) { (request, forward) throws(NetworkError) in
                _ = try forward(request)
                return .cut
            }
        },
        ConformanceCase(
            "altered-refresh-answer", section: "Refresh",
            requirement:
                "A refresh's answer with another ephemeral key, under the signature that it had, is not "
                + "believed, and the session goes on."
        ) { (trial) throws(ConformanceError) in
            guard let point = try? AgreementKey().publicPoint.bytes else { throw .notStaged("no key") }
            try expectRefreshRecovers(trial) { (request, forward) throws(NetworkError) in
                .answer(Forgery.altered(try forward(request), member: "ephemeral", to: .bytes(point)))
            }
        },
        ConformanceCase(
            "doubled-refresh", section: "Refresh",
            requirement:
                "A refresh that was doubled on its way, and so is refused as `replayed`, is sent again: the "
                + "same attempt, at another time."
        ) { (trial) throws(ConformanceError) in
            try expectRefreshRecovers(trial) { (request, forward) throws(NetworkError) in
                _ = try forward(request)
                return .answer(try forward(request))
            }
        },
        ConformanceCase(
            "refresh-after-restart", section: "Refresh",
            requirement:
                "The attempt and the counter are kept before they are sent: a port that was ended before the "
                + "answer came sends the same attempt with a larger counter when it runs again."
        ) { (trial) throws(ConformanceError) in
            var port = try trial.signedInPort(of: .shortLived)
            trial.front.intercept("POST", path: route, times: 20) {
                (request, forward) throws(NetworkError) in
                _ = try forward(request)
                return .cut
            }
            try trial.expectFailure(port.act("refresh"), that: "A refresh without an answer fails.")
            port.crash()
            let before = trial.requests("POST", path: route)
            trial.front.removeRules()
            port = try trial.port(of: .shortLived, state: 1)
            try trial.expectState(port, is: "signed-in", that: "The session is kept over a restart.")
            // A port may refresh as it starts, too: what counts is the first that it sends.
            try port.done("refresh")
            let following = Array(trial.requests("POST", path: route).dropFirst(before.count).prefix(1))
            try trial.expect(
                !following.isEmpty, that: "The port sends POST \(route) after its restart.",
                observed: "it sends \(trial.sent)")
            try expectOneAttempt(before + following, in: trial)
            try trial.call(port)
        },
        ConformanceCase(
            "replayed-refresh-answer", section: "Refresh",
            requirement: "The answer to an earlier refresh is not taken for the answer to this one."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort(of: .shortLived)
            try port.done("refresh")
            try trial.call(port)
            guard let earlier = trial.front.exchanges.last(where: { $0.request.path == route })?.answer else {
                throw ConformanceError("The port sends POST \(route).", observed: "it sends \(trial.sent)")
            }
            trial.front.intercept("POST", path: route, times: 4) { (_, _) in .answer(earlier) }
            try trial.expectFailure(port.act("refresh"), that: "The refresh is not reported as done.")
            try trial.expectRulesBegun(route)
            trial.front.removeRules()
            try port.done("refresh")
            try trial.call(port)
        },
        ConformanceCase(
            "endless-answer", section: "Answers",
            requirement: "An answer of the authority's without an end is given up."
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort(of: .shortLived)
            trial.front.intercept("POST", path: route, times: 4) { (_, _) in .endless }
            try trial.expectFailure(port.act("refresh"), that: "The refresh fails.")
            let taken = trial.front.endlessBytes
            try trial.expect(
                taken < 64 << 20, that: "The port reads less than 64 MiB of it.",
                observed: "it reads \(taken >> 20) MiB")
            trial.front.removeRules()
            try port.done("refresh")
            try trial.call(port)
        },
    ]

    /// The first refresh meets `treatment`; by the second, at the latest, the port is an epoch further, and
    /// was not taken for a thief.
    private static func expectRefreshRecovers(
        _ trial: Trial, treatment: @escaping InterceptionProxy.Interceptor
    ) throws(ConformanceError) {
        let port = try trial.signedInPort(of: .shortLived)
        trial.front.intercept("POST", path: route, treatment: treatment)
        if case .failed = try port.act("refresh") {
            try trial.expectRulesUsed()
            try trial.expectState(
                port, is: "signed-in", that: "A refresh that failed does not end the session.")
            try port.done("refresh")
        }
        try trial.expectRulesUsed()
        try expectOneAttempt(trial.requests("POST", path: route), in: trial)
        try trial.call(port)
        let keyID = try signature(of: "GET", path: "/hello", in: trial).keyID ?? ""
        try trial.expect(
            keyID.hasSuffix(".1"), that: "The call is signed under epoch 1.",
            observed: "the keyid is \(keyID)")
    }

    private static func expectOneAttempt(_ requests: [RawRequest], in trial: Trial) throws(ConformanceError) {
        let attempts = Set(requests.map { $0.bodyText("attempt") ?? "none" })
        try trial.expect(
            attempts.count == 1, that: "Each copy has the same `attempt`.",
            observed: "\(attempts.count) attempts in \(requests.count) requests")
        let times = requests.map { $0.bodyNumber("time") ?? 0 }
        try trial.expect(
            zip(times, times.dropFirst()).allSatisfy { $0 < $1 },
            that: "Each copy has a later `time` than the one before.",
            observed: times.map { String($0) }.joined(separator: ", "))
        let counters = requests.map { $0.bodyNumber("counter") ?? 0 }
        try trial.expect(
            counters.first ?? 0 > 0 && zip(counters, counters.dropFirst()).allSatisfy { $0 < $1 },
            that: "Each copy has a larger `counter` than the one before, from 1.",
            observed: counters.map { String($0) }.joined(separator: ", "))
    }
}

extension Trial {
    /// That path was asked for.
    func expectRulesBegun(_ path: String) throws(ConformanceError) {
        try expect(
            front.exchanges.contains { $0.request.path == path }, that: "The port sends POST \(path).",
            observed: "it sends \(sent)")
    }
}
