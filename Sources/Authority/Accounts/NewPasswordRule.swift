import CountersignGate
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire
import Glibc

/// What a new password must be, for places where the authority sees it: an administrator's, and an old
/// client's. A password that is registered by OPAQUE is checked on its device. Passwords that accounts have
/// already are not checked. Source: NIST SP 800-63B §3.1.1.2.
package struct NewPasswordRule: Sendable {
    private let minimum: Int
    private let list: BreachedPasswords?

    /// `files` opens the list that the policy names.
    package init(_ policy: Policy, files: PolicyFiles) {
        minimum = policy.passwordMinimum
        list = policy.breachedPasswords.map { BreachedPasswords($0, files: files) }
    }

    package enum Rejection: Sendable, Equatable, CustomStringConvertible {
        case tooShort(minimum: Int)
        case breached

        package var description: String {
            switch self {
            case .tooShort(let minimum): "expected at least \(minimum) characters"
            case .breached: "it is in the list of breached passwords; expected another"
            }
        }
    }

    /// Nil for an acceptable password. Throws if the list cannot be read: no password can then be set.
    /// Returns nil also for bytes that are no valid password; the caller rejects these when it stores the
    /// password.
    package func rejection(of password: Secret) throws(OperationalError) -> Rejection? {
        guard let typed = try? Password(typed: password) else { return nil }
        guard typed.codePoints >= minimum else { return .tooShort(minimum: minimum) }
        return try list?.contains(password) == true ? .breached : nil
    }
}

/// A file of SHA-1 hashes in hexadecimal, one a line, sorted, each with `:COUNT` behind it or without: the
/// form in which lists of breached passwords are published. It may be larger than memory: a look-up reads
/// some forty lines.
package struct BreachedPasswords: Sendable {
    private let path: String
    private let files: PolicyFiles

    package init(_ path: String, files: PolicyFiles) { (self.path, self.files) = (path, files) }

    /// No line is longer: 40 digits, a colon and a count.
    private static let longestLine = 64

    /// The duration depends on the hash, which says nothing about passwords that are not in the list. Throws
    /// if a line that is read is not in order with those read before: a list that is not sorted would let
    /// every password pass.
    package func contains(_ password: Secret) throws(OperationalError) -> Bool {
        let wanted = Array(Hex.encode(SHA1.digest(password).span).utf8)
        return try withFile { (file, size) throws(OperationalError) in
            var (low, high) = (0, size)
            var (before, behind): ([UInt8], [UInt8]?) = ([], nil)
            while low < high {
                let middle = low + (high - low) / 2
                let line = try line(from: middle, low: low, in: file)
                let isInOrder =
                    !line.hash.lexicographicallyPrecedes(before)
                    && !(behind.map { $0.lexicographicallyPrecedes(line.hash) } ?? false)
                guard isInOrder else { throw unsorted(at: line.start) }
                if line.hash == wanted { return true }
                if line.hash.lexicographicallyPrecedes(wanted) {
                    (low, before) = (line.end, line.hash)
                } else {
                    (high, behind) = (line.start, line.hash)
                }
            }
            return false
        }
    }

    /// Lines that ``check()`` reads at most: all of a small list.
    private static let mostChecked = 16_384

    /// Throws unless the file is a list, has a line, and is sorted as far as lines at equal distances tell,
    /// which a list in another order or one behind another does not pass. The time does not grow with the
    /// file.
    package func check() throws(OperationalError) {
        try withFile { (file, size) throws(OperationalError) in
            guard size > 0 else { throw unreadable("is empty; expected SHA-1 hashes, one a line") }
            let step = size / BreachedPasswords.mostChecked
            var (next, last): (Int, [UInt8]) = (0, [])
            while next < size {
                let line = try line(from: next, low: 0, in: file)
                guard !line.hash.lexicographicallyPrecedes(last) else { throw unsorted(at: line.start) }
                last = line.hash
                next = max(line.end, next + step)
            }
        }
    }

    private func withFile<Result>(
        _ body: (Int32, _ size: Int) throws(OperationalError) -> Result
    ) throws(OperationalError) -> Result {
        let file: FileDescriptor
        do throws(OperationalError) {
            file = try files.open(path)
        } catch {
            throw unreadable(error.message)
        }
        var status = stat()
        guard fstat(file.number, &status) == 0 else { throw unreadable("cannot be read: errno \(errno)") }
        return try body(file.number, Int(status.st_size))
    }

    private struct Line {
        let start: Int
        /// Behind the line feed.
        let end: Int
        /// In lower case.
        let hash: [UInt8]
    }

    /// The line that contains that byte; it does not begin before `low`.
    private func line(from middle: Int, low: Int, in file: Int32) throws(OperationalError) -> Line {
        let begin = max(low, middle - BreachedPasswords.longestLine)
        var bytes = [UInt8](repeating: 0, count: middle - begin + BreachedPasswords.longestLine)
        let count = pread(file, &bytes, bytes.count, off_t(begin))
        guard count > middle - begin else { throw unreadable("cannot be read: errno \(errno)") }
        bytes.removeLast(bytes.count - count)
        let feed = UInt8(ascii: "\n")
        let start = bytes[..<(middle - begin)].lastIndex(of: feed).map { $0 + 1 } ?? 0
        let end = bytes[(middle - begin)...].firstIndex(of: feed) ?? bytes.count
        let hash = bytes[start..<end].prefix(40).map { ASCII.lowercased($0) }
        guard begin + start == low || start > 0, hash.count == 40,
            hash.allSatisfy({ ASCII.isDigit($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0) }),
            end < bytes.count || count < middle - begin + BreachedPasswords.longestLine
        else {
            throw unreadable(
                "byte \(begin + start): expected sorted SHA-1 hashes in hexadecimal, one a line")
        }
        return Line(start: begin + start, end: begin + min(end + 1, bytes.count), hash: hash)
    }

    private func unsorted(at byte: Int) -> OperationalError {
        unreadable("byte \(byte): expected hashes in ascending order; `LC_ALL=C sort -f` sorts a list")
    }

    private func unreadable(_ reason: String) -> OperationalError {
        OperationalError(.failed, message: "breached-passwords \(path): \(reason)")
    }
}
