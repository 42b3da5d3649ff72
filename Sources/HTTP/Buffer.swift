import CountersignWire
import Glibc

/// Buffers bytes between a socket and its reader: memory of a fixed size with one filled range.
///
/// Confined to its loop. `start..<end` holds the bytes that were appended and not yet taken.
final class Buffer {
    static let size = 64 << 10

    let base = UnsafeMutableRawPointer.allocate(byteCount: Buffer.size, alignment: 64)
    private(set) var start = 0
    private(set) var end = 0
    /// Whether an append was cut because it did not fit. A sender that needs the whole content checks this
    /// before it sends.
    private(set) var isTruncated = false

    deinit { base.deallocate() }

    var count: Int { end - start }
    var isEmpty: Bool { start == end }
    var isFull: Bool { start == 0 && end == Buffer.size }

    var filled: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base + start, count: count) }
    var span: Span<UInt8> {
        @_lifetime(borrow self) get { _overrideLifetime(Span(_unsafeBytes: filled), borrowing: self) }
    }

    /// Bytes that may still be appended.
    var space: Int { Buffer.size - count }

    /// The free memory between the filled range and byte `most`; moves the filled range to the front when
    /// there is little free memory. Memory beyond `most` stays untouched, so that the kernel need not map
    /// it, unless the filled range ends there already.
    func room(upTo most: Int = Buffer.size) -> UnsafeMutableRawBufferPointer {
        if start > 0, end >= most || count < 64 { compact() }
        let limit = end < most ? min(most, Buffer.size) : Buffer.size
        return UnsafeMutableRawBufferPointer(start: base + end, count: limit - end)
    }

    func didFill(_ count: Int) { end += min(count, Buffer.size - end) }

    func take(_ count: Int) {
        start += min(count, self.count)
        if start == end { clear() }
    }

    func clear() {
        start = 0
        end = 0
        isTruncated = false
    }

    /// Appends as much of `bytes` as fits, and returns the number of bytes appended.
    @discardableResult
    func append(_ bytes: UnsafeRawBufferPointer) -> Int {
        // The usual case: there is room behind the filled range.
        if let source = bytes.baseAddress, bytes.count <= Buffer.size - end {
            memcpy(base + end, source, bytes.count)
            end += bytes.count
            return bytes.count
        }
        if start > 0, Buffer.size - end < bytes.count { compact() }
        let room = room()
        let count = min(bytes.count, room.count)
        if count > 0, let source = bytes.baseAddress, let target = room.baseAddress {
            memcpy(target, source, count)
        }
        end += count
        if count < bytes.count { isTruncated = true }
        return count
    }

    /// Appends `Name: value` and CRLF; for the gateway's own fields, whose size is known to be small.
    func appendField(_ name: String, value: String) {
        append(name)
        append(": ")
        append(value)
        append("\r\n")
    }

    /// Disfavoured, so that a literal is taken as a `StaticString`.
    @_disfavoredOverload
    private func append(_ text: String) {
        var text = text
        text.withUTF8 { _ = append(UnsafeRawBufferPointer($0)) }
    }

    func append(_ bytes: borrowing ByteBuffer) { bytes.span.withUnsafeBytes { _ = append($0) } }

    func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { _ = append($0) } }

    /// Of a constant text, this compiles to a few stores.
    @inline(__always) func append(_ text: StaticString) {
        let count = text.utf8CodeUnitCount
        guard count <= Buffer.size - end else {
            _ = append(UnsafeRawBufferPointer(start: text.utf8Start, count: count))
            return
        }
        (base + end).copyMemory(from: text.utf8Start, byteCount: count)
        end += count
    }

    func appendLength(_ length: Int) {
        append("Content-Length: ")
        appendDecimal(length)
        append("\r\n")
    }

    func appendDecimal(_ number: Int) { appendDigits(UInt(max(number, 0)), radix: 10) }

    func appendHex(_ number: Int) { appendDigits(UInt(max(number, 0)), radix: 16) }

    private func appendDigits(_ number: UInt, radix: UInt) {
        var digits = InlineArray<20, UInt8>(repeating: 0)
        var first = 20
        var rest = number
        repeat {
            first -= 1
            let digit = UInt8(truncatingIfNeeded: rest % radix)
            digits[first] = digit < 10 ? digit + UInt8(ascii: "0") : digit - 10 + UInt8(ascii: "a")
            rest /= radix
        } while rest > 0
        digits.span.extracting(first..<20).withUnsafeBytes { _ = append($0) }
    }

    private func compact() {
        memmove(base, base + start, count)
        end -= start
        start = 0
    }
}

/// A loop's spare buffers. A connection holds a buffer only while it transfers bytes, so idle connections
/// hold none.
final class BufferPool {
    private static let most = 64
    private var spare: [Buffer] = []

    func take() -> Buffer { spare.popLast() ?? Buffer() }

    func put(_ buffer: consuming Buffer) {
        buffer.clear()
        if spare.count < BufferPool.most { spare.append(buffer) }
    }
}
