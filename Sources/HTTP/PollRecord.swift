import CEvent

/// How much the poll of a loop's turn has reported: a poll that filled its room may have left descriptors
/// out.
///
/// libevent has room for 32 descriptors at first, and doubles it up to 4,096 whenever a poll has filled it
/// (epoll.c). It does not tell how much that is. So this keeps a lower bound: more descriptors reported at
/// once than that prove that the room has been doubled.
struct PollRecord {
    private static let mostRoom = 4_096

    private var room = 32
    private var inputs = 0
    /// Whether every descriptor that was watched when the turn began, and whose stream was not told of input,
    /// had none then. False until all callbacks of the poll have run.
    private(set) var isComplete = false

    /// Call before each poll.
    mutating func begin(on base: OpaquePointer) {
        inputs = 0
        isComplete = false
        event_base_get_max_events(base, UInt32(EVENT_BASE_COUNT_ACTIVE), 1)
    }

    /// Call once for each descriptor whose input the poll has reported.
    mutating func didReportInput() {
        inputs += 1
        if inputs > room { room = min(2 * room, PollRecord.mostRoom) }
    }

    /// Call when the poll's callbacks have run.
    mutating func end(on base: OpaquePointer) {
        // A descriptor that was reported had at least one event active at the poll's end.
        isComplete = event_base_get_max_events(base, UInt32(EVENT_BASE_COUNT_ACTIVE), 0) < room
    }
}
