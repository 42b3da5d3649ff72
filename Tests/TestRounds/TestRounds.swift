// How often a test with random input repeats, and from which seed. COUNTERSIGN_LONG=1, as the long forms set it,
// selects the full number of rounds; COUNTERSIGN_SEED repeats the run that printed that seed.
import CountersignWire

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Whether tests run in full: minutes, for `COUNTERSIGN_LONG=1`.
package var isLongRun: Bool { variable("COUNTERSIGN_LONG") == "1" }

/// The number of repetitions: a tenth of `long`, or `short`, outside of the long run.
package func rounds(_ long: Int, short: Int? = nil) -> Int { isLongRun ? long : short ?? long / 10 }

/// The seed of a test, which it prints: that of `COUNTERSIGN_SEED`, or a new one.
package func testSeed(_ file: String = #fileID, _ function: String = #function) -> UInt64 {
    let seed = variable("COUNTERSIGN_SEED").flatMap { UInt64($0) } ?? .random(in: 0...UInt64.max)
    print("seed: \(file) \(function): COUNTERSIGN_SEED=\(seed)")
    return seed
}

/// The random numbers of a test, from its seed.
package func seededRandom(_ file: String = #fileID, _ function: String = #function) -> SplitMix64 {
    SplitMix64(seed: testSeed(file, function))
}

private func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
