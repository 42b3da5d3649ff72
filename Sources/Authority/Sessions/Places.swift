import CountersignWire

/// Apps and their platforms by number: a session's record holds four bytes for the two names. There are as many as were ever
/// signed in to, which is few.
///
/// Safe to share: both are touched under the lock.
final class Places: @unchecked Sendable {
    struct Place: Hashable {
        var app: AppName
        var platform: Platform
    }

    private let lock = ReadWriteLock()
    private var all: [Place] = []
    private var numbers: [Place: UInt32] = [:]

    func number(of app: AppName, _ platform: Platform) -> UInt32 {
        let place = Place(app: app, platform: platform)
        if let number = lock.read({ numbers[place] }) { return number }
        return lock.write {
            if let number = numbers[place] { return number }
            all.append(place)
            let number = UInt32(all.count - 1)
            numbers[place] = number
            return number
        }
    }

    /// `number` is one that was given out.
    subscript(number: UInt32) -> Place { lock.read { all[Int(number)] } }
}
