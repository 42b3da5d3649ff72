import Countersign
import CountersignVault
import CountersignWire

/// What makes and uses the keys of a profile's device.
enum DeviceKeyChoice: String, Sendable, CaseIterable {
    /// Hardware where there is any.
    case auto
    case hardware
    case software

    /// The TCTI of a TPM other than the kernel's resource manager: a simulator, or another device file.
    static let tpmVariable = "COUNTERSIGN_TPM"

    init(_ text: String, at place: String) throws(Fault) {
        guard let choice = DeviceKeyChoice(rawValue: text) else {
            let names = DeviceKeyChoice.allCases.map(\.rawValue).joined(separator: ", ")
            throw Fault(.usage, "\(place) `\(text)`: expected one of \(names)")
        }
        self = choice
    }

    var storage: CountersignOptions.DeviceKeyStorage {
        switch self {
        case .auto: .hardwareWhereThereIsOne
        case .hardware: .hardwareOnly
        case .software: .softwareOnly
        }
    }
}

extension CountersignOptions {
    mutating func use(_ choice: DeviceKeyChoice, _ environment: Environment) {
        deviceKeyStorage = choice.storage
        #if os(Linux)
            if let device = environment[DeviceKeyChoice.tpmVariable], !device.isEmpty {
                deviceKeyHardware = TPMKeys(device: device)
            }
        #endif
    }
}
