import Glibc
import Synchronization

/// nginx in front of our gateway, which it asks about each request (`auth_request`).
package final class Nginx: Sendable {
    package let port: UInt16
    private let process: Mutex<ChildProcess?>

    /// Why rows with it are not run, where ``installed(path:)`` finds none.
    package static let absence = "nginx is not installed: not in PATH, /usr/sbin or /usr/local/sbin"

    /// Where it is installed, among the folders of `path` and those of Debian and the BSDs, which are in few users'
    /// `PATH`; nil where it is not.
    package static func installed(path: String) -> String? {
        let folders = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin"]
        return folders.map { "\($0)/nginx" }.first { access($0, X_OK) == 0 }
    }

    /// Listens from now on. `certificate` is nil without TLS.
    package init(
        program: String, folder: String, gateway: UInt16, backend: UInt16, secret: String,
        certificate pem: (certificate: [UInt8], key: [UInt8])?
    ) throws(StageFault) {
        port = try Ports.free()
        try Files.makeFolder(folder)
        if let pem {
            try Files.write(pem.certificate, to: "\(folder)/certificate.pem")
            try Files.write(pem.key, to: "\(folder)/key.pem")
        }
        let configuration = NginxConfiguration(
            folder: folder, port: port, gateway: gateway, backend: backend, secret: secret, isTLS: pem != nil)
        try Files.write(Array(configuration.text.utf8), to: "\(folder)/nginx.conf")
        let started = try ChildProcess(
            [program, "-p", folder, "-c", "\(folder)/nginx.conf", "-e", "\(folder)/errors"],
            environment: Binary.environment, errors: "\(folder)/complaints")
        process = Mutex(started)
        // It binds its port first.
        for _ in 0..<600 where access("\(folder)/pid", R_OK) != 0 { usleep(20_000) }
        guard access("\(folder)/pid", R_OK) == 0 else {
            stop()
            let said = (try? Files.read("\(folder)/errors")).map { String(decoding: $0.suffix(400), as: UTF8.self) }
            throw StageFault("\(program) does not listen: \(said ?? "")")
        }
    }

    /// Blocks its thread.
    package func stop() {
        let ending = process.withLock { process in
            defer { process = nil }
            return process
        }
        ending?.end()
    }
}
