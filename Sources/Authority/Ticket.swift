/// Names a piece of work to whoever may cancel it, even before it is in its queue. Changed under the queue's lock only, which is
/// what makes sharing it sound.
final class Ticket: @unchecked Sendable {
    enum State { case new, queued, taken, cancelled }

    var state = State.new
}
