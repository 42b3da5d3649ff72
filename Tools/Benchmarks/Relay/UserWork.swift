import Glibc

/// Work in place of the gateway's verification: a fixed number of steps for each request, the same in every
/// engine. Each step depends on the one before and reads a table of 32 KiB, so that the kernel's data are no
/// longer in the first-level cache.
struct UserWork {
    private let table: UnsafeMutableBufferPointer<UInt64>
    private let steps: Int
    private var state: UInt64 = 1

    init(steps: Int) {
        table = .allocate(capacity: 4096)
        for index in table.indices { table[index] = UInt64(index) &* 0x9E37_79B9_7F4A_7C15 }
        self.steps = steps
    }

    mutating func run() {
        var state = state
        for _ in 0..<steps { state = (state ^ table[Int(state >> 52)]) &* 0xD134_2543_DE82_EF95 &+ 1 }
        self.state = state
    }

    /// Nanoseconds of CPU that a step takes, the least of several runs.
    static func nanosecondsPerStep() -> Double {
        let steps = 2_000_000
        var work = UserWork(steps: steps)
        return (0..<20).map { _ in
            let before = clock()
            work.run()
            // The result is used, so that the compiler keeps the loop.
            return Double(clock() - before) * 1000 / Double(steps) + (work.state == 0 ? 1 : 0)
        }.min() ?? 1
    }
}
