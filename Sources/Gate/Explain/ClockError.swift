import CountersignSchemes

/// How a clock is wrong, where that is what makes a signature stale.
struct ClockError: CustomStringConvertible {
    let description: String

    init?(_ claim: Claim, _ allowance: Allowance, _ now: Int64) {
        // Times beyond all calendars are not worth a diagnosis, and would overflow below.
        guard let created = claim.created.instant(allowance), created.magnitude < 1 << 53, now.magnitude < 1 << 53
        else {
            return nil
        }
        if case .unix(let seconds) = claim.created, abs(seconds / 1000 - now) <= max(allowance.window, 1) {
            description = "created is in milliseconds; expected whole seconds"
            return
        }
        let ahead = created - now
        guard ahead.magnitude > allowance.window.magnitude else { return nil }
        let amount = "\(ahead.magnitude) s \(ahead > 0 ? "ahead of" : "behind") the time it is judged by"
        // Zones differ by whole quarters of an hour, up to fourteen hours.
        let quarters = (ahead + (ahead > 0 ? 450 : -450)) / 900
        if quarters != 0, quarters.magnitude <= 56, abs(ahead - quarters * 900) <= 60 {
            description = "local time was sent for UTC, or the app's timezone is set wrongly: \(amount)"
        } else {
            description = "the signer's clock is \(amount), or the request is an old one"
        }
    }
}
