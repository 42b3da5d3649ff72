// swift-format-ignore-file
// Apple names these, and documents them.
// Shapes of Darwin, as far as the SDK calls it: types are Darwin's (mode_t has 16 bits, sa_family_t 8), not those of this machine's C
// library. See README.md. Source: Apple's manual pages and headers.

public typealias mode_t = UInt16
