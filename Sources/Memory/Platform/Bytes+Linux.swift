#if os(Linux)
    package typealias Bytes16 = InlineArray<16, UInt8>
    package typealias Bytes32 = InlineArray<32, UInt8>
    package typealias Bytes64 = InlineArray<64, UInt8>

    extension InlineArray where Element == UInt8 {
        /// Zeros.
        @inlinable package init() { self.init(repeating: 0) }

        /// All bytes, to be written to.
        @inlinable package mutating func withUnsafeMutableBytes<Result>(
            _ body: (UnsafeMutableRawBufferPointer) -> Result
        ) -> Result {
            Swift.withUnsafeMutableBytes(of: &self) { body($0) }
        }
    }
#endif
