import CountersignSeal
import Glibc

// Measures whether the time of comparing a MAC depends on the length of its correct prefix. Two classes of
// MACs, one that differs from the right MAC in its first byte and one that differs in its last, are compared
// in random order; Welch's t-test shows whether their times have the same mean. Source: Reparaz, Balasch,
// Verbauwhede, "Dude, is my code constant time?", 2017.

let samples = 400_000
/// The number of comparisons of one pair in each sample: a single one is shorter than the clock's resolution.
let repetitions = 16
/// The share of the slowest samples of both classes that is cropped, as in dudect: interruptions cause them.
let cropped = 0.1
let limit = 4.5

func nanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// |t| of the two classes' times. The comparison is an argument, so that the compiler cannot hoist it out of
/// the loop.
@inline(never) func measure(
    _ compare: ([UInt8], [UInt8]) -> Bool, samples: Int, repetitions: Int, cropped: Double
)
    -> Double
{
    let right = SystemRandom().bytes(32)
    var sent = right
    var random = SystemRandomNumberGenerator()
    var times: [(isFirst: Bool, time: UInt64)] = []
    times.reserveCapacity(samples)
    for _ in 0..<samples {
        let isFirst = Bool.random(using: &random)
        // Both classes use the same memory, so that its address has no influence.
        for index in right.indices { sent[index] = right[index] }
        sent[isFirst ? 0 : 31] ^= 1
        var equal = 0
        let start = nanoseconds()
        for _ in 0..<repetitions where compare(right, sent) { equal += 1 }
        let time = nanoseconds() - start
        precondition(equal == 0, "two MACs that differ compare as equal")
        times.append((isFirst, time))
    }
    let slowest = times.map(\.time).sorted()[Int(Double(samples) * (1 - cropped))]
    let kept = times.filter { $0.time < slowest }
    return welch(
        kept.filter(\.isFirst).map { Double($0.time) }, kept.filter { !$0.isFirst }.map { Double($0.time) })
}

func welch(_ left: [Double], _ right: [Double]) -> Double {
    func moments(_ values: [Double]) -> (mean: Double, error: Double) {
        let mean = values.reduce(0, +) / Double(values.count)
        let variance = values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(values.count - 1)
        return (mean, variance / Double(values.count))
    }
    let (a, b) = (moments(left), moments(right))
    return abs(a.mean - b.mean) / (a.error + b.error).squareRoot()
}

@inline(never) func constantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    ConstantTime.equals(left.span, right.span) == .equal
}

@inline(never) func operatorEquals(_ left: [UInt8], _ right: [UInt8]) -> Bool { left == right }

let ours = measure(constantTime, samples: samples, repetitions: repetitions, cropped: cropped)
let plain = measure(operatorEquals, samples: samples, repetitions: repetitions, cropped: cropped)
print(
    """
    samples \(samples), \(repetitions) comparisons each, slowest \(Int(cropped * 100)) % cropped, limit |t| \
    \(limit)
    """
)
print(
    """
    ConstantTime.equals  |t| = \((ours * 100).rounded() / 100)  \
    \(ours < limit ? "no difference seen" : "LEAKS")
    """
)
print(
    """
    == on [UInt8]        |t| = \((plain * 100).rounded() / 100)  \
    \(plain > limit ? "leaks, as it should" : "NOT SEEN TO LEAK")
    """
)
exit(ours < limit && plain > limit ? 0 : 1)
