#if canImport(Darwin)
    package typealias Bytes16 = ArrayBytes<Length16>
    package typealias Bytes32 = ArrayBytes<Length32>
    package typealias Bytes64 = ArrayBytes<Length64>
#endif
