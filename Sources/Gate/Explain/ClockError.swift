import CountersignSchemes

extension Cause {
    /// How a clock is wrong, where that is what makes a signature stale; nil where it is not the clock.
    static func ofClock(_ claim: Claim, _ allowance: Allowance, _ now: Int64) -> Cause? {
        // Times beyond all calendars are not worth a diagnosis, and would overflow below.
        guard let created = claim.created.instant(allowance), created.magnitude < 1 << 53, now.magnitude < 1 << 53
        else { return nil }
        if case .unix(let time) = claim.created, let unit = unit(of: time, now, allowance.window) {
            return Cause(
                "milliseconds", "the time was sent in \(unit) instead of seconds", "send whole Unix seconds")
        }
        let ahead = created - now
        guard ahead.magnitude > allowance.window.magnitude else {
            guard let expires = claim.expires, expires <= now else { return nil }
            return Cause(
                "expired", "the signature expired \(now - expires) s before the time it is judged by",
                "sign anew for each request, or let it live longer")
        }
        let amount = "\(ahead.magnitude) s \(ahead > 0 ? "ahead of" : "behind") the time it is judged by"
        // Zones differ by whole quarters of an hour, up to fourteen hours.
        let quarters = (ahead + (ahead > 0 ? 450 : -450)) / 900
        if quarters != 0, quarters.magnitude <= 56, abs(ahead - quarters * 900) <= 60 {
            return Cause(
                "local-time", "local time was sent for UTC, or the app's timezone is set wrongly: \(amount)",
                "send the time in UTC; for form-md5, in the zone that the app's policy names (timezone)")
        }
        return Cause(
            "clock-off", "the signer's clock is \(amount), or the request is an old one",
            "set the clock (the refusal tells the time), and sign each request just before it is sent")
    }

    private static func unit(of time: Int64, _ now: Int64, _ window: Int64) -> String? {
        for (factor, name) in [(1_000, "milliseconds"), (1_000_000, "microseconds"), (1_000_000_000, "nanoseconds")]
        where abs(time / Int64(factor) - now) <= max(window, 1) {
            return name
        }
        return nil
    }
}
