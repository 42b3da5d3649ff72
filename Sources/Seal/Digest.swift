/// A digest's bytes, inline.
package typealias Digest<let count: Int> = InlineArray<count, UInt8>
