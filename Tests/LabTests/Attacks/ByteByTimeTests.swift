import Synchronization
import Testing

@testable import CountersignLab

@Suite struct ByteByTimeTests {
    private static let secret: [UInt8] = [0xC3, 0x07, 0x99, 0x10]

    /// A server that takes a time of its own for each answer, often much more, and `step` for each byte that fits.
    private static func server(step: Duration) -> ([UInt8]) -> Duration {
        var random = SystemRandomNumberGenerator()
        return { guess in
            let fitting = zip(guess, secret).prefix { $0 == $1 }.count
            let noise = Duration.microseconds(Int.random(in: 0...400, using: &random))
            let hiccup = Int.random(in: 0..<50, using: &random) == 0 ? Duration.milliseconds(30) : .zero
            return .microseconds(300) + noise + hiccup + step * fitting
        }
    }

    @Test func aComparisonThatEndsEarlyGivesItsBytesAway() throws {
        var right = 0
        for _ in 0..<10 {
            let server = ByteByTimeTests.server(step: .milliseconds(4))
            let search = ByteByTime(length: 4) { (guess) throws(NetworkProblem) in server(guess) }
            if try search.first(2) == Array(ByteByTimeTests.secret.prefix(2)) { right += 1 }
        }
        // One of them wrong is the bad luck of one run in a thousand: four hiccups in a row. Two are none in a million.
        #expect(right >= 9)
    }

    @Test func noiseAloneGivesNothingAway() throws {
        var right = 0
        for _ in 0..<10 {
            let server = ByteByTimeTests.server(step: .zero)
            let search = ByteByTime(length: 4) { (guess) throws(NetworkProblem) in server(guess) }
            if try search.first(2) == Array(ByteByTimeTests.secret.prefix(2)) { right += 1 }
        }
        // Once is luck of one in 6,500.
        #expect(right <= 1)
    }

    @Test func aServerThatDoesNotAnswerIsNoMeasurement() {
        let search = ByteByTime(length: 4) { (_) throws(NetworkProblem) in throw .notReached("nobody") }
        #expect(throws: NetworkProblem.self) { try search.first(1) }
    }
}
