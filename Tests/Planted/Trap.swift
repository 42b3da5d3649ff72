// A trap at three bytes, which a fuzzer finds only by coverage, as `fuzzPlanted` in Fuzz/main.swift; the environment
// variable SOUND takes it out. script/full --smoke compiles and runs it.
import Glibc

private let isSound = getenv("SOUND") != nil

/// libFuzzer's entry: 0 for an input that may stay in the corpus.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: start, count: count)
    guard bytes.count > 2, bytes[0] == 0x43, bytes[1] == 0x53 else { return 0 }
    precondition(isSound || bytes[2] != 0x21)
    return 0
}
