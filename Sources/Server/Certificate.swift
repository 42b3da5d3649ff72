import CountersignHTTP
import CountersignWire
import Glibc

/// The listener's TLS, from the settings: our own certificate, made at the first start and then kept, or files.
enum Certificate {
    static func context(for configuration: Configuration) throws(Fault) -> TLSContext? {
        do {
            switch configuration.tls {
            case .off: return nil
            case .files(let certificate, let key): return try TLSContext(certificate: certificate, key: key)
            case .automatic:
                let folder = "\(configuration.data)/tls"
                let paths = (certificate: "\(folder)/certificate.pem", key: "\(folder)/key.pem")
                if access(paths.certificate, F_OK) != 0 || access(paths.key, F_OK) != 0 {
                    try make(in: folder, paths, host: configuration.listen.host)
                }
                return try TLSContext(certificate: paths.certificate, key: paths.key)
            }
        } catch let fault as HTTPFault {
            throw Fault(.failed, "--tls: \(fault.description)")
        } catch let fault as Fault {
            throw fault
        } catch {
            throw Fault(.failed, "--tls: \(error)")
        }
    }

    private static func make(in folder: String, _ paths: (certificate: String, key: String), host: String) throws {
        var names = ["localhost", "127.0.0.1", "::1"]
        if !names.contains(host), host != "0.0.0.0", host != "::" { names.append(host) }
        let made = try SelfSigned.make(names: names)
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
            throw Fault(.failed, "\(folder): cannot make the folder: \(String(cString: strerror(errno)))")
        }
        // The key first: a certificate without its key would look like a finished pair.
        try PrivateFile.write(made.key, to: paths.key)
        try PrivateFile.write(made.certificate, to: paths.certificate)
    }
}

/// Files that only their owner may read, put in place whole: after a crash there is the old one or the new one.
enum PrivateFile {
    static func write(_ bytes: [UInt8], to path: String) throws(Fault) {
        let part = path + ".part"
        let descriptor = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(path) }
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 || errno == EINTR else {
                let fault = failure(path)
                close(descriptor)
                unlink(part)
                throw fault
            }
            written += max(count, 0)
        }
        guard fsync(descriptor) == 0, close(descriptor) == 0, rename(part, path) == 0 else { throw failure(path) }
    }

    private static func failure(_ path: String) -> Fault {
        Fault(.failed, "\(path): cannot write it: \(String(cString: strerror(errno)))")
    }
}
