import CPQ
import CountersignWire
import Glibc

extension PostgreSQLConnection {
    /// Waits until the server has notified (true), `other` has input, or the time is over. Notifications that
    /// came with an answer count, too.
    func waitForNotification(milliseconds: Int, alongside other: Int32) throws(OperationalError) -> Bool {
        if takeNotifications() { return true }
        var descriptors = [
            pollfd(fd: functions.pointee.PQsocket(handle), events: Int16(POLLIN), revents: 0),
            pollfd(fd: other, events: Int16(POLLIN), revents: 0),
        ]
        guard descriptors[0].fd >= 0 else { throw lost("the connection was lost") }
        let count = poll(&descriptors, 2, Int32(clamping: milliseconds))
        guard count >= 0 || errno == EINTR else { throw lost("the connection cannot be waited for") }
        guard count > 0, descriptors[0].revents != 0 else { return false }
        guard functions.pointee.PQconsumeInput(handle) == 1 else { throw lost("the connection was lost") }
        return takeNotifications()
    }

    /// Whether there was any. What they say does not matter.
    private func takeNotifications() -> Bool {
        var areThere = false
        while let notification = functions.pointee.PQnotifies(handle) {
            functions.pointee.PQfreemem(UnsafeMutableRawPointer(notification))
            areThere = true
        }
        return areThere
    }
}
