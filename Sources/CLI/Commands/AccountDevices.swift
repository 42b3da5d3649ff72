import CountersignAuthority
import CountersignHandshake
import CountersignWire

extension Command {
    static let accountDevices = Command(
        words: ["account", "devices"], summary: "list the devices that an account knows",
        positionals: [Positional(name: "APP"), Positional(name: "NAME")], options: [.data, .json],
        notes: """
            A device is known once it has signed in, or has signed a registration with a reset code. It has \
            login limits of its own,
            so that guesses from elsewhere do not keep it out. The newest \(KnownDevice.mostOfAccount) are \
            kept. A new password forgets
            all but the device that set it.
            """
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let devices = try run.deployment().knownDevices(of: name, in: app)
        let json: JSONValue = [
            "app": .string(app.description), "account": .string(name.description),
            "devices": .array(devices.map(\.json)),
        ]
        try run.print(json) {
            if devices.isEmpty { return "no devices" }
            return Table.text(
                head: ["DEVICE", "NAME", "CLASS", "FIRST SEEN", "LAST SEEN"],
                rows: devices.map { entry in
                    [
                        String(entry.text.prefix(KnownDeviceEntry.shownDigits)), entry.name,
                        entry.kind.rawValue, TimeText.text(entry.firstSeen),
                        TimeText.text(entry.device.lastSeen),
                    ]
                })
        }
        return .success
    }

    static let accountForgetDevice = Command(
        words: ["account", "forget-device"], summary: "take a device's own login limits from it",
        positionals: [Positional(name: "APP"), Positional(name: "NAME"), Positional(name: "DEVICE")],
        options: [.data, .json],
        notes: """
            DEVICE is the id that `countersign account devices` prints, or at least \
            \(KnownDeviceEntry.fewestDigits) digits of its beginning. Sessions of the
            device continue; `countersign session revoke` ends one, and forgets its device. A device that \
            signs in with the password
            is known again.
            """
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let text = try run.required("DEVICE").lowercased()
        guard (KnownDeviceEntry.fewestDigits...64).contains(text.utf8.count), text.allSatisfy(\.isHexDigit)
        else {
            throw OperationalError(
                .usage,
                message:
                    "DEVICE `\(text)`: expected \(KnownDeviceEntry.fewestDigits) to 64 hexadecimal digits, "
                    + "as `countersign account devices` has them")
        }
        let entry = try run.deployment().forgetDevice(text, of: name, in: app)
        let json: JSONValue = [
            "app": .string(app.description), "account": .string(name.description),
            "forgotten": entry.json,
        ]
        try run.print(json) {
            "forgot \(entry.name) (\(entry.text.prefix(KnownDeviceEntry.shownDigits)))"
        }
        return .success
    }
}

extension KnownDeviceEntry {
    /// Digits of the id in a table: enough to tell devices of an account apart.
    fileprivate static let shownDigits = 16
    fileprivate static let fewestDigits = 8

    fileprivate var json: JSONValue {
        [
            "device": .string(text), "class": .string(kind.rawValue), "name": .string(name),
            "first_seen": .integer(firstSeen), "last_seen": .integer(device.lastSeen),
        ]
    }
}
