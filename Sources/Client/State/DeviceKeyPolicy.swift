import CountersignSeal
import CountersignVault

/// Where a client's device keys may be made and used.
package struct DeviceKeyPolicy: Sendable {
    package enum Preference: Sendable {
        /// In hardware; in software on a device that has none, or whose hardware does not work.
        case hardwareWhereThereIsOne
        /// A login fails where there is none.
        case hardwareOnly
        case softwareOnly
    }

    package let preference: Preference
    /// Nil on a device that has none.
    package let hardware: (any DeviceKeyBackEnd)?

    package init(_ preference: Preference, hardware: (any DeviceKeyBackEnd)?) {
        self.preference = preference
        self.hardware = hardware
    }

    /// The program itself.
    package static let software = DeviceKeyPolicy(.softwareOnly, hardware: nil)

    /// Those that may make keys, the best first. Throws where none may.
    var makers: [any DeviceKeyBackEnd] {
        get throws(ClientProblem) {
            switch (preference, hardware) {
            case (.softwareOnly, _), (.hardwareWhereThereIsOne, nil): return [SoftwareKeys()]
            case (.hardwareWhereThereIsOne, let hardware?): return [hardware, SoftwareKeys()]
            case (.hardwareOnly, let hardware?): return [hardware]
            case (.hardwareOnly, nil):
                throw .deviceKeyUnavailable(
                    "hardware is demanded for the device's keys, and this device has none")
            }
        }
    }

    /// What uses keys that were made there, whatever is preferred now: a session goes on with the keys that
    /// it has.
    func backEnd(of storage: KeyStorage) throws(ClientProblem) -> any DeviceKeyBackEnd {
        if storage == .software { return SoftwareKeys() }
        guard let hardware, hardware.storage == storage else {
            throw .deviceKeyUnavailable(
                "they are in its \(storage.rawValue), which is absent or closed to this program; a login makes others")
        }
        return hardware
    }
}
