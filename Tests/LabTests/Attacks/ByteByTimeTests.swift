import Synchronization
import Testing

@testable import CountersignLab

@Suite struct ByteByTimeTests {
    private static let secret: [UInt8] = [0xC3, 0x07, 0x99, 0x10]

    /// A server with random response times, often much longer, that takes `step` more for each correct byte.
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
            let search = TimingSearch(length: 4) { (guess) throws(NetworkError) in server(guess) }
            if try search.first(2) == Array(ByteByTimeTests.secret.prefix(2)) { right += 1 }
        }
        // One wrong byte occurs in one run of a thousand: four delays in a row. Two occur in less than one of
        // a million.
        #expect(right >= 9)
    }

    @Test func noiseAloneGivesNothingAway() throws {
        var right = 0
        for _ in 0..<10 {
            let server = ByteByTimeTests.server(step: .zero)
            let search = TimingSearch(length: 4) { (guess) throws(NetworkError) in server(guess) }
            if try search.first(2) == Array(ByteByTimeTests.secret.prefix(2)) { right += 1 }
        }
        // One correct guess has a probability of one in 6,500.
        #expect(right <= 1)
    }

    @Test func aServerThatDoesNotAnswerIsNoMeasurement() {
        let search = TimingSearch(length: 4) { (_) throws(NetworkError) in throw .notReached("nobody") }
        #expect(throws: NetworkError.self) { try search.first(1) }
    }
}
