import CountersignLab
import CountersignWire

/// Parts that a port may leave out: it does not name them among its features, and the report says so.
extension ConformanceCase {
    static let optional: [ConformanceCase] = [
        ConformanceCase(
            "device-signed-call", section: "Device-signed routes",
            requirement:
                "A call that is refused as `device-unsigned` is sent again with the device's signature.",
            feature: "device-signature"
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            try trial.call(
                port, method: "POST", target: "/device/pay",
                members: ["body": .bytes(Array("{}".utf8)), "fields": ["content-type": "application/json"]])
        },
        ConformanceCase(
            "changed-password", section: "Another password",
            requirement:
                "`change-password` proves the old password and registers the new one; the session goes on.",
            feature: "change-password"
        ) { (trial) throws(ConformanceError) in
            let port = try trial.signedInPort()
            try port.done(
                "change-password",
                with: ["password": .string(trial.password), "new_password": .string(trial.password + "2")])
            try trial.call(port)
            let other = try trial.port()
            try trial.expectFailure(
                other.act("log-in", with: trial.credentials), code: "wrong-credentials",
                that: "The old password opens nothing.")
            try other.done(
                "log-in",
                with: ["account": .string(trial.account), "password": .string(trial.password + "2")])
        },
        ConformanceCase(
            "next-authority-key", section: "Keys that clients know",
            requirement:
                "An answer under the authority's next key is believed, and from then on none under the "
                + "former one, also in a later process.",
            feature: "next-authority-key"
        ) { (trial) throws(ConformanceError) in
            let (key, now) = (try trial.nextAnswerKey(), trial.now)
            let port = try trial.port()
            // As after a rotation.
            for route in ["/registration/start", "/registration/finish"] {
                trial.front.intercept("POST", path: Trial.own(route)) {
                    (request, forward) throws(NetworkError) in
                    .answer(
                        Forgery.signed(
                            Forgery.unsigned(try forward(request)), to: request, by: key, at: now))
                }
            }
            try trial.signUp(port)
            try trial.expectRulesUsed()
            for port in [port, try trial.port(state: trial.portCount)] {
                try trial.expectFailure(
                    port.act("log-in", with: trial.credentials),
                    that: "An answer under the former key, which may have leaked, is not believed.")
            }
        },
    ]
}
