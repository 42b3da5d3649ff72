// swift-format-ignore-file
// Apple names these, and documents them.
// Shapes of Security.framework; see README.md. Source: Apple's documentation of Keychain Services.
import Foundation

public typealias CFTypeRef = AnyObject
public typealias CFString = NSString
public typealias CFDictionary = NSDictionary
public typealias CFBoolean = NSNumber
public typealias CFAllocator = NSObject
public typealias CFError = NSError
public typealias OSStatus = Int32

public final class SecAccessControl: NSObject {}

public struct SecAccessControlCreateFlags: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static var userPresence: SecAccessControlCreateFlags { SecAccessControlCreateFlags(rawValue: 1) }
    public static var privateKeyUsage: SecAccessControlCreateFlags {
        SecAccessControlCreateFlags(rawValue: 2)
    }
}

public var kCFBooleanTrue: CFBoolean! { nil }
public var kCFBooleanFalse: CFBoolean! { nil }
public var kSecClass: CFString { "" }
public var kSecClassGenericPassword: CFString { "" }
public var kSecAttrService: CFString { "" }
public var kSecAttrAccount: CFString { "" }
public var kSecAttrDescription: CFString { "" }
public var kSecAttrAccessGroup: CFString { "" }
public var kSecAttrSynchronizable: CFString { "" }
public var kSecAttrAccessible: CFString { "" }
public var kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString { "" }
public var kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly: CFString { "" }
public var kSecAttrAccessControl: CFString { "" }
public var kSecUseDataProtectionKeychain: CFString { "" }
public var kSecUseAuthenticationContext: CFString { "" }
public var kSecReturnData: CFString { "" }
public var kSecReturnAttributes: CFString { "" }
public var kSecMatchLimit: CFString { "" }
public var kSecMatchLimitOne: CFString { "" }
public var kSecMatchLimitAll: CFString { "" }
public var kSecValueData: CFString { "" }

public func SecItemCopyMatching(
    _ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?
) -> OSStatus { 0 }
public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    0
}
public func SecItemUpdate(_ query: CFDictionary, _ attributes: CFDictionary) -> OSStatus { 0 }
@discardableResult public func SecItemDelete(_ query: CFDictionary) -> OSStatus { 0 }
public func SecAccessControlCreateWithFlags(
    _ allocator: CFAllocator?, _ protection: CFTypeRef, _ flags: SecAccessControlCreateFlags,
    _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? { nil }

// Certificates. Source: Apple's documentation of Certificate, Key, and Trust Services.
public typealias CFArray = NSArray
public typealias CFData = NSData
public typealias CFDate = NSDate
public final class SecTrust: NSObject {}
public final class SecPolicy: NSObject {}
public final class SecCertificate: NSObject {}
public struct tls_protocol_version_t: Sendable {
    public static var TLSv12: tls_protocol_version_t { tls_protocol_version_t() }
}
public func SecPolicyCreateSSL(_ server: Bool, _ hostname: CFString?) -> SecPolicy { SecPolicy() }
public func SecCertificateCreateWithData(_ allocator: CFAllocator?, _ data: CFData) -> SecCertificate? { nil }
public func SecCertificateCopyData(_ certificate: SecCertificate) -> CFData { CFData() }
@discardableResult public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: CFTypeRef) -> OSStatus { 0 }
@discardableResult public func SecTrustSetVerifyDate(_ trust: SecTrust, _ date: CFDate) -> OSStatus { 0 }
@discardableResult
public func SecTrustSetNetworkFetchAllowed(_ trust: SecTrust, _ allowed: Bool) -> OSStatus { 0 }
@discardableResult
public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchors: CFArray?) -> OSStatus { 0 }
@discardableResult
public func SecTrustSetAnchorCertificatesOnly(_ trust: SecTrust, _ only: Bool) -> OSStatus { 0 }
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: UnsafeMutablePointer<CFError?>?) -> Bool {
    false
}
public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> CFArray? { nil }
public func CFErrorGetCode(_ error: CFError) -> Int { 0 }
public var errSecCertificateExpired: OSStatus { -67818 }
public var errSecCertificateNotValidYet: OSStatus { -67819 }
public var errSecCertificateRevoked: OSStatus { -67820 }
public var errSecNotTrusted: OSStatus { -67843 }
public var errSecInvalidExtendedKeyUsage: OSStatus { -67609 }
public var errSecCreateChainFailed: OSStatus { -25318 }
