import CountersignSeal

/// What this machine has for device keys besides software. Twins in Platform/ say.
package enum DeviceKeyHardware {}

extension DeviceKeyError {
    /// What the Secure Enclave's error means for the key.
    package init(_ failure: EnclaveFailure) {
        let text = "Secure Enclave: \(failure.domain) \(failure.code)"
        self =
            failure.isLossOfKey
            ? .lost("\(text): the key is another device's, or was altered") : .unavailable(text)
    }

    static func translating<Value>(
        _ body: () throws(EnclaveFailure) -> Value
    ) throws(DeviceKeyError) -> Value {
        do {
            return try body()
        } catch {
            throw DeviceKeyError(error)
        }
    }
}
