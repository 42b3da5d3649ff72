import CountersignSeal
import CountersignVault

/// Where a client's device keys may be made and used.
package struct DeviceKeyPolicy: Sendable {
    package enum Preference: Sendable {
        /// In hardware; in software on a device without it, or if the hardware does not work.
        case hardwareWhereThereIsOne
        /// In hardware; a login fails on a device without it.
        case hardwareOnly
        case softwareOnly
    }

    package let preference: Preference
    /// Nil on a device without hardware for keys.
    package let hardware: (any DeviceKeyBackEnd)?

    package init(_ preference: Preference, hardware: (any DeviceKeyBackEnd)?) {
        self.preference = preference
        self.hardware = hardware
    }

    /// Keys in software only.
    package static let software = DeviceKeyPolicy(.softwareOnly, hardware: nil)

    /// The back ends that may make keys, the best first. Throws if none may.
    var makers: [any DeviceKeyBackEnd] {
        get throws(ClientOperationError) {
            switch (preference, hardware) {
            case (.softwareOnly, _), (.hardwareWhereThereIsOne, nil): return [SoftwareKeys()]
            case (.hardwareWhereThereIsOne, let hardware?): return [hardware, SoftwareKeys()]
            case (.hardwareOnly, let hardware?): return [hardware]
            case (.hardwareOnly, nil):
                throw .deviceKeyUnavailable(
                    "hardware is demanded for the device's keys, and \(DeviceKeyHardware.absence)")
            }
        }
    }

    /// The back end for keys that are already stored, whatever is preferred now: a session continues with the
    /// keys that it has.
    func backEnd(of storage: KeyStorage) throws(ClientOperationError) -> any DeviceKeyBackEnd {
        if storage == .software { return SoftwareKeys() }
        guard let hardware, hardware.storage == storage else {
            throw .deviceKeyUnavailable(
                "they are in its \(storage.rawValue), and \(DeviceKeyHardware.absence); a login makes others")
        }
        return hardware
    }
}
