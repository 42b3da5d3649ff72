import CountersignHTTP
import CountersignWire
import Glibc

/// The listener's TLS, from the settings: a self-signed certificate that the first start makes and keeps, or
/// PEM files.
enum Certificate {
    static func context(for configuration: Configuration) throws(OperationalError) -> TLSContext? {
        do {
            guard let paths = configuration.tlsFiles else { return nil }
            if configuration.tls == .automatic,
                access(paths.certificate, F_OK) != 0 || access(paths.key, F_OK) != 0
            {
                try make(
                    in: "\(configuration.data)/tls", paths: paths, host: configuration.listen.host)
            }
            return try TLSContext(certificate: paths.certificate, key: paths.key)
        } catch {
            throw OperationalError(error, in: "--tls")
        }
    }

    private static func make(in folder: String, paths: (certificate: String, key: String), host: String)
        throws
    {
        var names = ["localhost", "127.0.0.1", "::1"]
        if !names.contains(host), host != "0.0.0.0", host != "::" { names.append(host) }
        let made = try SelfSignedCertificate.make(names: names)
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
            throw OperationalError(
                .failed, message: "\(folder): cannot make the folder: \(String(cString: strerror(errno)))")
        }
        // Write the key first: a certificate without its key would look like a complete pair.
        try OwnerOnlyFile.write(made.key, to: paths.key)
        try OwnerOnlyFile.write(made.certificate, to: paths.certificate)
    }
}

/// Files that only their owner may read, replaced atomically: a crash leaves the old file or the new one.
enum OwnerOnlyFile {
    static func write(_ bytes: [UInt8], to path: String) throws(OperationalError) {
        let part = path + ".part"
        let descriptor = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(path) }
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress, $0.count)
            }
            guard count > 0 || errno == EINTR else {
                let fault = failure(path)
                close(descriptor)
                unlink(part)
                throw fault
            }
            written += max(count, 0)
        }
        guard fsync(descriptor) == 0, close(descriptor) == 0, rename(part, path) == 0 else {
            throw failure(path)
        }
    }

    private static func failure(_ path: String) -> OperationalError {
        OperationalError(.failed, message: "\(path): cannot write it: \(String(cString: strerror(errno)))")
    }
}
