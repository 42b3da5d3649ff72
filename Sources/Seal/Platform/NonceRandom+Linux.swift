#if os(Linux)
    import CountersignMemory
    import Glibc

    /// The kernel's generator, asked for sixteen nonces at once: a system call for each would be a tenth
    /// of what signing a request costs. Longer random values, keys among them, come from the kernel one by
    /// one.
    ///
    /// The kernel clears the supply in a child process, which would otherwise hand out its parent's nonces.
    package final class NonceRandom: RandomSource {
        /// The length of the values that are taken from the supply, in bytes.
        private static let length = 16
        private static let values = 16

        /// A page: the number of values that are left, and the values. Nil if the kernel gives none that is
        /// cleared in a child.
        private let supply: Locked<UnsafeMutableRawPointer?>

        package init() {
            let page = mmap(nil, NonceRandom.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            guard let page, page != MAP_FAILED else {
                supply = Locked(nil)
                return
            }
            guard madvise(page, NonceRandom.size, MADV_WIPEONFORK) == 0 else {
                munmap(page, NonceRandom.size)
                supply = Locked(nil)
                return
            }
            supply = Locked(page)
        }

        deinit {
            supply.with { page in
                if let page { munmap(page, NonceRandom.size) }
            }
        }

        private static let size = 4_096

        package func bytes(_ count: Int) -> [UInt8] {
            guard count == NonceRandom.length else { return SystemRandom().bytes(count) }
            return supply.with { page in
                guard let page else { return SystemRandom().bytes(count) }
                var left = page.load(as: Int.self)
                if left == 0 {
                    let fresh = SystemRandom().bytes(NonceRandom.values * count)
                    fresh.withUnsafeBytes {
                        UnsafeMutableRawBufferPointer(start: page + count, count: $0.count).copyMemory(
                            from: $0)
                    }
                    left = NonceRandom.values
                }
                let value = UnsafeMutableRawBufferPointer(start: page + left * count, count: count)
                defer {
                    // It may be an idempotency key, which is handed out once.
                    value.initializeMemory(as: UInt8.self, repeating: 0)
                    page.storeBytes(of: left - 1, as: Int.self)
                }
                return Array(value)
            }
        }
    }
#else
    /// The system's generator, which needs no system call for a short value.
    package typealias NonceRandom = SystemRandom
#endif
