import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignWire

/// Keeps the refusals of one loop for the console, and looks for the mistakes that explain them. Confined to
/// the loop.
final class RefusalRecorder {
    private let refusals: RecentRefusals
    private let gate: Gate
    private let clock: any TimeSource
    private var allowance = ExplanationAllowance()

    /// `gate` is that of the loop.
    init(_ refusals: RecentRefusals, gate: Gate, clock: any TimeSource = SystemTime()) {
        self.refusals = refusals
        self.gate = gate
        self.clock = clock
    }

    /// `line` is the event's line in the log. Call after the response, so that the time of the search tells
    /// the caller nothing. Not inlined: few requests need its frame.
    @inline(never)
    func record(_ event: RequestEvent, of exchange: any Exchange, after judgement: Judgement, line: [UInt8]) {
        let explanation = explanation(of: event, for: exchange, after: judgement)
        let named = event.caller?.release ?? judgement.release
        refusals.add(
            RecentRefusal(
                event: event.id.text, code: event.outcome(on: exchange), line: line,
                named: named.map { ($0.app, $0.id.description) },
                search: explanation.map { .made($0.cause, notes: $0.notes) } ?? .notMade,
                time: clock.now), of: event.verifiedParty(of: exchange, after: judgement))
    }

    /// Nil if the allowance is used up, or if the request names no release.
    private func explanation(
        of event: RequestEvent, for exchange: any Exchange, after judgement: Judgement
    ) -> Explanation? {
        guard let refusal = event.refusal, event.caller == nil, !exchange.request.method.isEmpty,
            allowance.take(now: exchange.loop.seconds)
        else { return nil }
        return gate.explanationForOperators(
            of: refusal, for: exchange.request, judgement: judgement, within: .operators)
    }
}

/// What one loop may spend on explanations for operators. Confined to the loop.
///
/// A caller without the secret can have one computed by naming a release, so that the whole loop has one
/// budget: one a second, of about two milliseconds.
struct ExplanationAllowance {
    private static let most = 5

    private var left = ExplanationAllowance.most
    private var second: Int64 = 0

    init() {}

    /// `now` is in seconds of a clock that does not go back.
    mutating func take(now: Int64) -> Bool {
        if now > second {
            left = Int(min(Int64(ExplanationAllowance.most), Int64(left) + now - second))
            second = now
        }
        guard left > 0 else { return false }
        left -= 1
        return true
    }
}
