// swift-format-ignore-file
// Apple names these, and documents them. Shapes of LocalAuthentication.framework; see README.md. Source:
// Apple's documentation of LAContext and LAError.
import Foundation
import Security

public final class LAContext: NSObject {
    public func evaluateAccessControl(
        _ control: SecAccessControl, operation: LAAccessControlOperation, localizedReason: String
    ) async throws -> Bool { false }
}

public enum LAAccessControlOperation: Int, Sendable { case useItem = 1 }

public struct LAError: Error {
    public enum Code: Int, Sendable { case passcodeNotSet = -5 }
}
