import CLinux
import CountersignGate
import CountersignSeal
import CountersignWire
import Glibc

/// One file of the log: `DATA/requests-NUMBER.log`. It begins with 64 bytes, all integers little-endian:
///
/// ```
/// "CSREQLOG" ‖ version (4) ‖ 0 (4) ‖ number (8) ‖ when it was made (8) ‖ salt (16) ‖ MAC (16)
/// ```
///
/// The salt makes the key of its records, so that a record is valid in one segment only.
struct RequestLogSegment {
    static let headerBytes = 64
    private static let magic = Array("CSREQLOG".utf8)
    private static let version: UInt64 = 1
    private static let extent = 1 << 20

    let number: UInt32
    let path: String
    /// Whole Unix seconds.
    let made: Int64
    let key: KeyedHash
    private let file: FileDescriptor
    /// The end of the last valid record.
    var end = headerBytes
    /// Blocks up to here are reserved for the file.
    private var reserved = 0

    private init(
        number: UInt32, path: String, made: Int64, key: KeyedHash, file: FileDescriptor
    ) {
        (self.number, self.path, self.made, self.key, self.file) = (number, path, made, key, file)
    }

    // MARK: Names

    static func path(of number: UInt32, in folder: DataFolder) -> String {
        var digits = String(number)
        while digits.utf8.count < 10 { digits = "0" + digits }
        return folder.file("requests-\(digits).log")
    }

    /// The numbers of the segments in the folder, in order.
    static func numbers(in folder: DataFolder) throws(OperationalError) -> [UInt32] {
        guard let listing = opendir(folder.path) else {
            throw SystemCallError(errno, while: "\(folder.path): cannot list it").fault(.unreachable)
        }
        defer { closedir(listing) }
        var numbers: [UInt32] = []
        while let item = readdir(listing) {
            let name = withUnsafeBytes(of: item.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name.hasPrefix("requests-"), name.hasSuffix(".log") else { continue }
            let digits = name.dropFirst(9).dropLast(4)
            guard digits.utf8.count == 10, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let number = UInt32(digits)
            else { continue }
            numbers.append(number)
        }
        return numbers.sorted()
    }

    // MARK: Opening

    /// Makes an empty segment, which is on the disk when this returns. Nothing is left of one that could not
    /// be made.
    static func make(
        _ number: UInt32, in folder: DataFolder, keys: RequestLogKeys, at now: Int64
    ) throws(OperationalError) -> RequestLogSegment {
        let path = path(of: number, in: folder)
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw fault(errno, at: path, while: "cannot make it") }
        let file = FileDescriptor(owning: descriptor)
        _ = KeyFile.giveToFolderOwner(descriptor, path: path)
        var header = magic
        header.append(number: version, bytes: 4)
        header.append(number: 0, bytes: 4)
        header.append(number: UInt64(number), bytes: 8)
        header.append(number: UInt64(bitPattern: now), bytes: 8)
        header += SystemRandom().bytes(16)
        let tag = keys.records.hash(header.span)
        header.append(number: tag.low, bytes: 8)
        header.append(number: tag.high, bytes: 8)
        var segment = RequestLogSegment(
            number: number, path: path, made: now, key: recordKey(header, keys: keys), file: file)
        do {
            try segment.reserve(extent - headerBytes)
            try segment.write(header, at: 0)
            try segment.synchronise()
            try synchronise(folder)
        } catch {
            unlink(path)
            throw error
        }
        return segment
    }

    /// Nil if the file has no valid header.
    init?(
        opening number: UInt32, in folder: DataFolder, keys: RequestLogKeys
    ) throws(OperationalError) {
        let path = RequestLogSegment.path(of: number, in: folder)
        let descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            throw RequestLogSegment.fault(errno, at: path, while: "cannot open it")
        }
        let file = FileDescriptor(owning: descriptor)
        let header = try RequestLogSegment.read(
            file, from: 0, count: RequestLogSegment.headerBytes, path: path)
        let end = RequestLogSegment.headerBytes - 16
        guard header.count == RequestLogSegment.headerBytes,
            Array(header.prefix(8)) == RequestLogSegment.magic
        else { return nil }
        guard header.span.number(at: 8, bytes: 4) == RequestLogSegment.version else {
            throw OperationalError(
                .failed,
                message:
                    "\(path): version \(header.span.number(at: 8, bytes: 4)) of the log of keyed requests; "
                    + "this build reads version \(RequestLogSegment.version)")
        }
        let tag = keys.records.hash(header.span.extracting(0..<end))
        guard tag.low == header.span.number(at: end, bytes: 8),
            tag.high == header.span.number(at: end + 8, bytes: 8),
            header.span.number(at: 16, bytes: 8) == UInt64(number)
        else { return nil }
        self.init(
            number: number, path: path, made: Int64(bitPattern: header.span.number(at: 24, bytes: 8)),
            key: RequestLogSegment.recordKey(header, keys: keys), file: file)
    }

    private static func recordKey(_ header: [UInt8], keys: RequestLogKeys) -> KeyedHash {
        var text = Array("countersign/1 records of".utf8)
        text += header.prefix(headerBytes - 16)
        let key = keys.records.hash(text.span)
        return KeyedHash(
            key: KeyedHash.Key { index in
                UInt8(truncatingIfNeeded: (index < 8 ? key.low : key.high) >> UInt64(8 * (index % 8)))
            })
    }

    // MARK: The file

    /// The bytes of the file at `path`.
    static func size(at path: String) throws(OperationalError) -> Int {
        var status = stat()
        guard stat(path, &status) == 0 else { throw fault(errno, at: path, while: "cannot look at it") }
        return Int(status.st_size)
    }

    /// The bytes of the file.
    func size() throws(OperationalError) -> Int {
        var status = stat()
        guard fstat(file.number, &status) == 0 else {
            throw RequestLogSegment.fault(errno, at: path, while: "cannot look at it")
        }
        return Int(status.st_size)
    }

    func read(from place: Int, count: Int) throws(OperationalError) -> [UInt8] {
        try RequestLogSegment.read(file, from: place, count: count, path: path)
    }

    /// Fewer bytes at the file's end.
    private static func read(
        _ file: FileDescriptor, from place: Int, count: Int, path: String
    ) throws(OperationalError) -> [UInt8] {
        var code: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let here = pread(
                    file.number, buffer.baseAddress.map { $0 + filled }, count - filled, off_t(place + filled)
                )
                if here < 0, errno == EINTR { continue }
                if here < 0 { code = errno }
                guard here > 0 else { return }
                filled += here
            }
        }
        guard code == 0 else { throw fault(code, at: path, while: "cannot read it") }
        return bytes
    }

    /// Reserves blocks, so that a full disk is noticed before anything has changed. A file system that cannot
    /// reserve reports a full disk at the write.
    mutating func reserve(_ count: Int) throws(OperationalError) {
        guard end + count > reserved else { return }
        let most = end + max(count, RequestLogSegment.extent)
        let code = cs_reserve(file.number, off_t(most))
        guard code == 0 || code == EOPNOTSUPP || code == ENOSYS else {
            throw RequestLogSegment.fault(code, at: path, while: "cannot make it longer")
        }
        reserved = most
    }

    func write(_ bytes: [UInt8], at place: Int) throws(OperationalError) {
        var written = 0
        while written < bytes.count {
            let here = bytes.withUnsafeBytes {
                pwrite(
                    file.number, $0.baseAddress.map { $0 + written }, $0.count - written,
                    off_t(place + written))
            }
            if here < 0, errno == EINTR { continue }
            guard here > 0 else {
                throw RequestLogSegment.fault(
                    here < 0 ? errno : ENOSPC, at: path, while: "cannot write to it")
            }
            written += here
        }
    }

    func synchronise() throws(OperationalError) {
        guard fdatasync(file.number) == 0 else {
            throw RequestLogSegment.fault(errno, at: path, while: "the disk does not take it")
        }
    }

    /// Removes what is behind the last valid record.
    func truncate() throws(OperationalError) {
        guard ftruncate(file.number, off_t(end)) == 0 else {
            throw RequestLogSegment.fault(errno, at: path, while: "cannot shorten it")
        }
    }

    func remove() { unlink(path) }

    static func synchronise(_ folder: DataFolder) throws(OperationalError) {
        let descriptor = open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw fault(errno, at: folder.path, while: "cannot open it") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else {
            throw fault(errno, at: folder.path, while: "the disk does not take it")
        }
    }

    static func fault(_ code: Int32, at path: String, while what: String) -> OperationalError {
        if code == ENOSPC || code == EDQUOT || code == EFBIG {
            return OperationalError(
                .unreachable, message: "\(path): the disk is full; nothing was changed")
        }
        return SystemCallError(code, while: "\(path): \(what)").fault(.unreachable)
    }
}
