// swift-format-ignore-file
// Apple names these, and documents them. Shapes of Darwin's C library, as far as the SDK calls it. Types and
// constants are Darwin's, not this machine's: mode_t has 16 bits, an address begins with its length. See
// README.md. Source: Apple's manual pages, and the headers of xnu and Libc.

public typealias mode_t = UInt16
public typealias off_t = Int64
public typealias time_t = Int
public typealias socklen_t = UInt32
public typealias sa_family_t = UInt8

public var errno: Int32 { get { 0 } set {} }
public var EINTR: Int32 { 4 }
public var ENOENT: Int32 { 2 }
public var EEXIST: Int32 { 17 }
public var EACCES: Int32 { 13 }
public var EWOULDBLOCK: Int32 { 35 }
public func strerror(_ number: Int32) -> UnsafeMutablePointer<CChar>! { nil }

public func memcmp(_ left: UnsafeRawPointer!, _ right: UnsafeRawPointer!, _ count: Int) -> Int32 { 0 }
public func memchr(_ bytes: UnsafeRawPointer!, _ byte: Int32, _ count: Int) -> UnsafeMutableRawPointer! {
    nil
}

// Files
public var O_RDONLY: Int32 { 0 }
public var O_WRONLY: Int32 { 1 }
public var O_RDWR: Int32 { 2 }
public var O_CREAT: Int32 { 0x200 }
public var O_TRUNC: Int32 { 0x400 }
public var O_EXCL: Int32 { 0x800 }
public var O_NOFOLLOW: Int32 { 0x100 }
public var O_CLOEXEC: Int32 { 0x1000000 }
public var O_DIRECTORY: Int32 { 0x100000 }
public var O_NOCTTY: Int32 { 0x20000 }
public var O_NONBLOCK: Int32 { 0x4 }
public var F_OK: Int32 { 0 }
public var LOCK_EX: Int32 { 2 }
public var LOCK_NB: Int32 { 4 }
public var LOCK_UN: Int32 { 8 }
public var S_IFMT: mode_t { 0o170000 }
public var S_IFREG: mode_t { 0o100000 }
public struct stat {
    public init() {}
    public var st_mode: mode_t = 0
    public var st_size: off_t = 0
    public var st_uid: UInt32 = 0
}
public func open(_ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 { 0 }
public func open(_ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t) -> Int32 { 0 }
@discardableResult public func close(_ file: Int32) -> Int32 { 0 }
public func read(_ file: Int32, _ bytes: UnsafeMutableRawPointer!, _ count: Int) -> Int { 0 }
public func pread(_ file: Int32, _ bytes: UnsafeMutableRawPointer!, _ count: Int, _ from: off_t) -> Int { 0 }
public func write(_ file: Int32, _ bytes: UnsafeRawPointer!, _ count: Int) -> Int { 0 }
public func fsync(_ file: Int32) -> Int32 { 0 }
public func fstat(_ file: Int32, _ status: UnsafeMutablePointer<stat>!) -> Int32 { 0 }
public func access(_ path: UnsafePointer<CChar>!, _ mode: Int32) -> Int32 { 0 }
@discardableResult public func flock(_ file: Int32, _ operation: Int32) -> Int32 { 0 }
@discardableResult public func unlink(_ path: UnsafePointer<CChar>!) -> Int32 { 0 }
public func rename(_ old: UnsafePointer<CChar>!, _ new: UnsafePointer<CChar>!) -> Int32 { 0 }
public func mkdir(_ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 { 0 }
@discardableResult public func usleep(_ microseconds: UInt32) -> Int32 { 0 }
public struct dirent {
    public var d_name: (CChar, CChar) = (0, 0)
}
public struct DIR {}
public func opendir(_ path: UnsafePointer<CChar>!) -> UnsafeMutablePointer<DIR>! { nil }
public func readdir(_ folder: UnsafeMutablePointer<DIR>!) -> UnsafeMutablePointer<dirent>! { nil }
@discardableResult public func closedir(_ folder: UnsafeMutablePointer<DIR>!) -> Int32 { 0 }

// Threads
public struct os_unfair_lock_s { public init() {} }
public typealias os_unfair_lock = os_unfair_lock_s
@available(macOS 10.12, iOS 10, *)
public func os_unfair_lock_lock(_ lock: UnsafeMutablePointer<os_unfair_lock>) {}
@available(macOS 10.12, iOS 10, *)
public func os_unfair_lock_unlock(_ lock: UnsafeMutablePointer<os_unfair_lock>) {}

// Clocks
public struct timespec {
    public init() {}
    public var tv_sec: time_t = 0
    public var tv_nsec: Int = 0
}
public struct clockid_t { public init(_ number: UInt32) {} }
public var CLOCK_MONOTONIC: clockid_t { clockid_t(6) }
public var CLOCK_THREAD_CPUTIME_ID: clockid_t { clockid_t(16) }
public func time(_ place: UnsafeMutablePointer<time_t>!) -> time_t { 0 }
@discardableResult public func clock_gettime(
    _ clock: clockid_t, _ now: UnsafeMutablePointer<timespec>!
) -> Int32 {
    0
}

// Addresses
public var AF_INET: Int32 { 2 }
public var AF_INET6: Int32 { 30 }
public var INET6_ADDRSTRLEN: Int32 { 46 }
public var IFF_UP: Int32 { 1 }
public var IFF_LOOPBACK: Int32 { 8 }
public struct in_addr { public init() {} }
public struct in6_addr { public init() {} }
public struct sockaddr {
    public var sa_len: UInt8 = 0
    public var sa_family: sa_family_t = 0
}
public struct ifaddrs {
    public var ifa_next: UnsafeMutablePointer<ifaddrs>! { nil }
    public var ifa_flags: UInt32 = 0
    public var ifa_addr: UnsafeMutablePointer<sockaddr>! { nil }
}
public func inet_pton(
    _ family: Int32, _ text: UnsafePointer<CChar>!, _ address: UnsafeMutableRawPointer!
) -> Int32 {
    0
}
public func inet_ntop(
    _ family: Int32, _ address: UnsafeRawPointer!, _ text: UnsafeMutablePointer<CChar>!, _ count: socklen_t
) -> UnsafePointer<CChar>! {
    nil
}
public func getifaddrs(_ first: UnsafeMutablePointer<UnsafeMutablePointer<ifaddrs>?>!) -> Int32 { 0 }
public func freeifaddrs(_ first: UnsafeMutablePointer<ifaddrs>!) {}

// ClientEnvironment
public func getenv(_ name: UnsafePointer<CChar>!) -> UnsafeMutablePointer<CChar>! { nil }
public func mkdtemp(_ template: UnsafeMutablePointer<CChar>!) -> UnsafeMutablePointer<CChar>! { nil }
@discardableResult public func rmdir(_ path: UnsafePointer<CChar>!) -> Int32 { 0 }
