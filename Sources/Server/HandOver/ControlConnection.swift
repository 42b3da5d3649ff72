import CLinux
import CountersignAuthority
import CountersignGate
import CountersignWire
import Glibc

/// One end of a connection to the control socket of a data folder, over which commands and a successor
/// communicate with the running server. Messages are packets of ASCII text, each with at most one descriptor.
///
/// The socket is a file of mode 0600 in a folder of mode 0700: a process that can open it can also read the
/// master key.
///
/// Safe to share: it contains only a descriptor, which is never replaced, and the kernel keeps packets whole.
final class ControlConnection: Sendable {
    enum Message {
        case message(String, FileDescriptor?)
        case end
        case nothing
    }

    static let mostBytes = 512
    private let socket: FileDescriptor

    init(_ socket: FileDescriptor) { self.socket = socket }

    /// Nil if no server listens on this folder.
    init?(to folder: DataFolder) throws(OperationalError) {
        socket = try ControlSocket.make()
        var code: Int32 = 0
        try ControlSocket.withAddress(ControlSocket.name, in: folder) { (address, count) in
            code = connect(socket.number, address, count) == 0 ? 0 : errno
        }
        switch code {
        case 0: return
        case ENOENT, ECONNREFUSED: return nil
        default: throw OperationalError.system("the server's control socket", code: code)
        }
    }

    func send(_ message: String, with descriptor: FileDescriptor? = nil) throws(OperationalError) {
        let bytes = Array(message.utf8.prefix(ControlConnection.mostBytes))
        while true {
            let sent = bytes.withUnsafeBytes {
                cs_send_with_descriptor(socket.number, $0.baseAddress, $0.count, descriptor?.number ?? -1)
            }
            if sent < 0, errno == EINTR { continue }
            guard sent == bytes.count else {
                throw OperationalError.system("the control socket", code: errno)
            }
            return
        }
    }

    /// The next message; waits at most `milliseconds` for it.
    func receive(within milliseconds: Int) throws(OperationalError) -> Message {
        var item = pollfd(fd: socket.number, events: Int16(POLLIN), revents: 0)
        let ready = poll(&item, 1, Int32(clamping: milliseconds))
        guard ready > 0 else {
            if ready == 0 || errno == EINTR { return .nothing }
            throw OperationalError.system("the control socket", code: errno)
        }
        var bytes = [UInt8](repeating: 0, count: ControlConnection.mostBytes)
        var descriptor: Int32 = -1
        let count = bytes.withUnsafeMutableBytes {
            cs_receive_with_descriptor(socket.number, $0.baseAddress, $0.count, &descriptor)
        }
        let passed = descriptor >= 0 ? FileDescriptor(owning: descriptor) : nil
        // The peer's death with unread input counts as an end, too.
        if count == 0 || count < 0 && errno == ECONNRESET { return .end }
        guard count > 0 else { throw OperationalError.system("the control socket", code: errno) }
        return .message(String(decoding: bytes[..<count], as: UTF8.self), passed)
    }

    /// The next message, for which it waits `milliseconds`; throws if none comes.
    func expect(within milliseconds: Int) throws(OperationalError) -> (
        message: String, descriptor: FileDescriptor?
    ) {
        switch try receive(within: milliseconds) {
        case .message(let message, let descriptor): return (message, descriptor)
        case .end: throw OperationalError(.failed, message: "the running server closed its control socket")
        case .nothing:
            throw OperationalError(
                .failed, message: "the running server does not answer at its control socket")
        }
    }
}

/// The file through which processes reach a running server.
enum ControlSocket {
    static let name = "control"

    static func make() throws(OperationalError) -> FileDescriptor {
        let closesOnExec: Int32 = 0o2000000
        let number = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue) | closesOnExec, 0)
        guard number >= 0 else { throw OperationalError.system("a control socket", code: errno) }
        return FileDescriptor(owning: number)
    }

    /// Listens under the socket's name, in place of a process that did so before.
    static func listen(in folder: DataFolder) throws(OperationalError) -> FileDescriptor {
        let socket = try make()
        let draft = "\(name).new"
        unlink(folder.file(draft))
        var code: Int32 = 0
        try withAddress(draft, in: folder) { (address, count) in
            if bind(socket.number, address, count) != 0 { code = errno }
        }
        guard code == 0, chmod(folder.file(draft), 0o600) == 0, Glibc.listen(socket.number, 16) == 0,
            rename(folder.file(draft), folder.file(name)) == 0
        else { throw OperationalError.system(folder.file(name), code: code == 0 ? errno : code) }
        return socket
    }

    /// A socket address holds 107 bytes of path, and the path of a data folder may be longer: so the address
    /// names the folder by its descriptor.
    static func withAddress(
        _ name: String, in folder: DataFolder, body: (UnsafePointer<sockaddr>, socklen_t) -> Void
    ) throws(OperationalError) {
        let number = open(folder.path, O_DIRECTORY | O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw OperationalError.system(folder.path, code: errno) }
        let opened = FileDescriptor(owning: number)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = Array("/proc/self/fd/\(opened.number)/\(name)".utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        withExtendedLifetime(opened) {}
    }
}
