/// A digest's bytes.
package typealias Digest16 = Bytes16
package typealias Digest32 = Bytes32
package typealias Digest64 = Bytes64
