#if os(Linux)
    import CountersignSeal
    import Glibc
    import Testing

    /// The comparison reads all of both operands wherever they differ. `script/timing` measures the time; this
    /// test counts the pages. The kernel maps a page of fresh memory when the page is first read, so the pages that
    /// are mapped afterwards are the pages that were read. No clock is involved.
    @Suite struct ConstantTimeTests {
        /// Three pages of fresh memory, of which only the first byte is written.
        private final class FreshPages {
            static let count = 3
            private let pageBytes = sysconf(Int32(_SC_PAGESIZE))
            private let start: UnsafeMutableRawPointer

            var bytes: Int { pageBytes * FreshPages.count }

            init(first: UInt8) throws {
                start = try #require(
                    mmap(
                        nil, sysconf(Int32(_SC_PAGESIZE)) * FreshPages.count, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
                try #require(start != MAP_FAILED)
                start.storeBytes(of: first, as: UInt8.self)
            }

            deinit { munmap(start, bytes) }

            /// The pages that are in memory. Source: mincore(2).
            var mapped: [Bool] {
                var pages = [UInt8](repeating: 0, count: FreshPages.count)
                guard mincore(start, bytes, &pages) == 0 else { return [] }
                return pages.map { $0 & 1 == 1 }
            }

            var buffer: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: bytes) }
        }

        /// Which pages of either operand a comparison reads, where the first bytes differ.
        private func pagesRead(
            by compare: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Bool
        ) throws -> [[Bool]] {
            let (left, right) = (try FreshPages(first: 1), try FreshPages(first: 2))
            try #require(left.mapped == [true, false, false], "the kernel does not tell what was read")
            #expect(!compare(left.buffer, right.buffer))
            return [left.mapped, right.mapped]
        }

        @Test func theComparisonReadsAllOfBothOperands() throws {
            let read = try pagesRead { left, right in
                ConstantTime.equals(Span(_unsafeBytes: left), Span(_unsafeBytes: right)) == .equal
            }
            #expect(read == [[true, true, true], [true, true, true]])
        }

        /// The method detects a comparison that stops early.
        @Test func aComparisonThatStopsEarlyIsSeen() throws {
            let read = try pagesRead { left, right in left.elementsEqual(right) }
            #expect(read == [[true, false, false], [true, false, false]])
        }
    }
#endif
