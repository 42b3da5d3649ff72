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
    ]
}
