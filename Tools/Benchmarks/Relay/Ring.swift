import CRelay
import Glibc

/// An io_uring with a ring of provided buffers and a table of registered descriptors, which cost the kernel
/// least. Confined to the thread that makes it.
struct Ring {
    static let bufferBytes = 4096
    private static let bufferCount = 1024
    private static let entryCount: UInt32 = 1024

    private let descriptor: Int32
    private let submissionHead, submissionTail, completionHead, completionTail: UnsafeMutablePointer<UInt32>
    private let submissions: UnsafeMutablePointer<io_uring_sqe>
    private let completions: UnsafeMutablePointer<io_uring_cqe>
    private let completionMask: UInt32
    /// The ring of free buffers that the kernel takes from; the first entry's last field is its tail.
    private let free: UnsafeMutablePointer<io_uring_buf>
    private let buffers: UnsafeMutableRawPointer
    private var freeTail: UInt16 = 0
    private var tail: UInt32 = 0
    private var queued: UInt32 = 0

    init() {
        var parameters = io_uring_params()
        var ring: Int32 = -1
        // Linux 6.1 has all flags, 5.19 the last.
        let least = UInt32(IORING_SETUP_COOP_TASKRUN)
        for flags in [least | UInt32(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN), least] {
            parameters = io_uring_params()
            parameters.flags = flags
            ring = ring_setup(Self.entryCount, &parameters)
            if ring >= 0 || errno != EINVAL { break }
        }
        guard ring >= 0 else { fail("io_uring_setup") }
        descriptor = ring
        let completionBytes =
            Int(parameters.cq_off.cqes) + Int(parameters.cq_entries) * MemoryLayout<io_uring_cqe>.stride
        let bytes = max(Int(parameters.sq_off.array) + Int(parameters.sq_entries) * 4, completionBytes)
        let rings = Self.map(ring, bytes: bytes, offset: Int(IORING_OFF_SQ_RING))
        func field(_ offset: UInt32) -> UnsafeMutablePointer<UInt32> {
            (rings + Int(offset)).assumingMemoryBound(to: UInt32.self)
        }
        (submissionHead, submissionTail) = (field(parameters.sq_off.head), field(parameters.sq_off.tail))
        (completionHead, completionTail) = (field(parameters.cq_off.head), field(parameters.cq_off.tail))
        completionMask = field(parameters.cq_off.ring_mask).pointee
        completions = (rings + Int(parameters.cq_off.cqes)).assumingMemoryBound(to: io_uring_cqe.self)
        let submissionBytes = Int(parameters.sq_entries) * MemoryLayout<io_uring_sqe>.stride
        submissions = Self.map(ring, bytes: submissionBytes, offset: Int(IORING_OFF_SQES))
            .assumingMemoryBound(to: io_uring_sqe.self)
        let order = field(parameters.sq_off.array)
        for index in 0..<Int(parameters.sq_entries) { order[index] = UInt32(index) }

        let freeBytes = Self.bufferCount * MemoryLayout<io_uring_buf>.stride
        free = Self.map(-1, bytes: freeBytes, offset: 0).assumingMemoryBound(to: io_uring_buf.self)
        buffers = Self.map(-1, bytes: Self.bufferCount * Self.bufferBytes, offset: 0)
        var provided = io_uring_buf_reg()
        provided.ring_addr = UInt64(UInt(bitPattern: free))
        provided.ring_entries = UInt32(Self.bufferCount)
        register(UInt32(IORING_REGISTER_PBUF_RING), argument: &provided, count: 1)
        for identifier in 0..<Self.bufferCount { giveBack(UInt16(identifier)) }

        var table = io_uring_rsrc_register()
        table.nr = 4096
        table.flags = UInt32(IORING_RSRC_REGISTER_SPARSE)
        let size = UInt32(MemoryLayout<io_uring_rsrc_register>.size)
        register(UInt32(IORING_REGISTER_FILES2), argument: &table, count: size)
    }

    private static func map(_ file: Int32, bytes: Int, offset: Int) -> UnsafeMutableRawPointer {
        let flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE
        let memory = mmap(nil, bytes, PROT_READ | PROT_WRITE, flags, file, offset)
        guard let memory, memory != MAP_FAILED else { fail("mmap") }
        return memory
    }

    private func register(_ operation: UInt32, argument: UnsafeRawPointer, count: UInt32) {
        guard ring_register(descriptor, operation, argument, count) >= 0 else { fail("io_uring_register") }
    }

    /// Registers a socket under its own number, or removes it (`nil`).
    func setRegistered(_ socket: Int32?, at place: Int32) {
        var value = socket ?? -1
        withUnsafePointer(to: &value) { pointer in
            var update = io_uring_files_update()
            update.offset = UInt32(place)
            update.fds = UInt64(UInt(bitPattern: pointer))
            register(UInt32(IORING_REGISTER_FILES_UPDATE), argument: &update, count: 1)
        }
    }

    func bytes(of buffer: UInt16) -> UnsafeMutableRawPointer { buffers + Int(buffer) * Self.bufferBytes }

    /// Returns a buffer to the kernel, which may overwrite it at once.
    mutating func giveBack(_ buffer: UInt16) {
        let place = Int(freeTail) & (Self.bufferCount - 1)
        // Not as a whole: the ring's tail lies within its first entry.
        free[place].addr = UInt64(UInt(bitPattern: bytes(of: buffer)))
        free[place].len = UInt32(Self.bufferBytes)
        free[place].bid = buffer
        freeTail &+= 1
        let tail = (UnsafeMutableRawPointer(free) + 14).assumingMemoryBound(to: UInt16.self)
        ring_store_short(tail, freeTail)
    }

    /// Queues an operation; the next ``submit(awaiting:)`` starts it.
    private mutating func add(
        _ operation: io_uring_op, on place: Int32, flags: UInt32, multishot: UInt32 = 0, tag: Tag,
        _ set: (UnsafeMutablePointer<io_uring_sqe>) -> Void = { _ in }
    ) {
        if queued == Self.entryCount { submit(awaiting: 0) }
        let entry = submissions + Int(tail & (Self.entryCount - 1))
        entry.pointee = io_uring_sqe()
        entry.pointee.opcode = UInt8(operation.rawValue)
        entry.pointee.fd = place
        entry.pointee.flags = UInt8(flags)
        entry.pointee.ioprio = UInt16(multishot)
        entry.pointee.user_data = tag.rawValue
        set(entry)
        tail &+= 1
        queued += 1
    }

    mutating func accept(from listener: Int32) {
        let tag = Tag(kind: .accept, place: listener)
        add(IORING_OP_ACCEPT, on: listener, flags: 0, multishot: UInt32(IORING_ACCEPT_MULTISHOT), tag: tag)
    }

    mutating func receive(from place: Int32, isMultishot: Bool) {
        // IOSQE_FIXED_FILE and IOSQE_BUFFER_SELECT, which the header defines by an enumeration of bits.
        add(
            IORING_OP_RECV, on: place, flags: 1 << 0 | 1 << 5,
            multishot: isMultishot ? UInt32(IORING_RECV_MULTISHOT) : 0,
            tag: Tag(kind: .receive, place: place))
    }

    mutating func send(_ buffer: UInt16, count: Int, to place: Int32) {
        let start = UInt64(UInt(bitPattern: bytes(of: buffer)))
        let tag = Tag(kind: .send, place: place, buffer: buffer, count: UInt16(count))
        add(IORING_OP_SEND, on: place, flags: 1 << 0, tag: tag) {
            $0.pointee.addr = start
            $0.pointee.len = UInt32(count)
            $0.pointee.msg_flags = UInt32(MSG_NOSIGNAL)
        }
    }

    /// Starts what is queued and waits for completions, in one system call.
    mutating func submit(awaiting least: UInt32) {
        ring_store(submissionTail, tail)
        let started = ring_enter(descriptor, queued, least, UInt32(IORING_ENTER_GETEVENTS))
        guard started >= 0 || errno == EINTR else { fail("io_uring_enter") }
        queued = tail &- ring_load(submissionHead)
    }

    /// The next completion, if there is one.
    func nextCompletion() -> io_uring_cqe? {
        let head = completionHead.pointee
        guard head != ring_load(completionTail) else { return nil }
        let completion = completions[Int(head & completionMask)]
        ring_store(completionHead, head &+ 1)
        return completion
    }
}

/// What a completion belongs to, in the 64 bits that the kernel hands back.
struct Tag {
    enum Kind: UInt64 { case accept, receive, send }

    let rawValue: UInt64

    init(rawValue: UInt64) { self.rawValue = rawValue }

    init(kind: Kind, place: Int32, buffer: UInt16 = 0, count: UInt16 = 0) {
        rawValue = kind.rawValue | UInt64(UInt16(place)) << 16 | UInt64(buffer) << 32 | UInt64(count) << 48
    }

    var kind: Kind? { Kind(rawValue: rawValue & 0xFFFF) }
    var place: Int32 { Int32(rawValue >> 16 & 0xFFFF) }
    var buffer: UInt16 { UInt16(rawValue >> 32 & 0xFFFF) }
    var count: Int32 { Int32(rawValue >> 48) }
}
