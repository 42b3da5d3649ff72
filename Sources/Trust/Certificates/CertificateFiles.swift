import CountersignWire

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

extension Trust.Certificate {
    /// All certificates of a PEM text, in their order; text between them is skipped. Source: RFC 7468 §5.
    public static func all(inPEM text: [UInt8]) throws(TrustError) -> [Trust.Certificate] {
        var found: [Trust.Certificate] = []
        var letters: [UInt8]?
        for line in text.split(omittingEmptySubsequences: true, whereSeparator: { $0 == 0x0A || $0 == 0x0D })
        {
            if line.elementsEqual("-----BEGIN CERTIFICATE-----".utf8) {
                guard letters == nil else { throw TrustError("PEM: a certificate begins within another") }
                letters = []
            } else if line.elementsEqual("-----END CERTIFICATE-----".utf8) {
                guard let whole = letters, let der = Base64.decode(whole.span, as: .standard) else {
                    throw TrustError("PEM: expected Base64 between the lines of a certificate")
                }
                found.append(try Trust.Certificate(der: der))
                letters = nil
            } else {
                letters?.append(contentsOf: line.filter { $0 != 0x20 && $0 != 0x09 })
            }
        }
        guard letters == nil else { throw TrustError("PEM: a certificate without its end") }
        return found
    }

    /// The certificates in a folder, such as that of an app's resources (`Bundle.main.resourcePath`): each
    /// `.cer` file has one in DER, each `.pem` file any number; other files are skipped. In the order of the
    /// files' names. Throws if the folder has no certificate, or if the contents of a file do not match its
    /// name: without that file, the trust would differ from what the app intends.
    public static func all(inFolder path: String) throws(TrustError) -> [Trust.Certificate] {
        var found: [Trust.Certificate] = []
        for name in try names(inFolder: path) {
            let file = "\(path)/\(name)"
            do throws(TrustError) {
                if name.hasSuffix(".cer") {
                    found.append(try Trust.Certificate(der: try read(file)))
                } else if name.hasSuffix(".pem") {
                    let some = try all(inPEM: try read(file))
                    guard !some.isEmpty else { throw TrustError("no certificate in it") }
                    found += some
                }
            } catch {
                throw TrustError("\(file): \(error)")
            }
        }
        guard !found.isEmpty else {
            throw TrustError("\(path): expected `.cer` (DER) or `.pem` files in it")
        }
        return found
    }

    private static func names(inFolder path: String) throws(TrustError) -> [String] {
        guard let folder = opendir(path) else { throw TrustError("\(path): cannot be read as a folder") }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            names.append(name)
        }
        return names.sorted()
    }

    /// Sufficient: a certificate chain has a few kilobytes, all authorities of a system a quarter of this.
    private static let largestFile = 1 << 20

    private static func read(_ file: String) throws(TrustError) -> [UInt8] {
        guard let bytes = FileBytes.contents(of: file, upTo: largestFile) else {
            throw TrustError("cannot be read, or is larger than \(largestFile) bytes")
        }
        return bytes
    }
}

/// Reads and writes small files as a whole.
enum FileBytes {
    /// The contents of a file; nil if it cannot be read or is larger than `limit` bytes.
    static func contents(of path: String, upTo limit: Int) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = read(descriptor, &part, part.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0, bytes.count + count <= limit else { return nil }
            if count == 0 { return bytes }
            bytes += part.prefix(count)
        }
    }

    /// Writes `bytes` in one call; returns the number of bytes written, or -1.
    static func put(_ bytes: [UInt8], in descriptor: Int32) -> Int {
        bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    }
}
