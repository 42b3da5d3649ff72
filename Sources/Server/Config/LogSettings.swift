import CountersignHTTP

extension Setting {
    /// Which lines are written about callers who have proved nothing.
    static let logSampling: [Setting] = [
        number(
            "log-sample", \.logSampling.burst, in: 0...1_000_000,
            "lines of each cause and address in ten seconds, for callers who have proved nothing; "
                + "the rest is counted. 0: every line"
        ),
        number(
            "log-sample-seconds", \.logSampling.window, in: 1...3600,
            "seconds for which they are sampled and counted, in place of ten"),
        number(
            "log-sample-lines", \.logSampling.mostLines, in: 1...10_000_000,
            "such lines of all causes and addresses together"),
    ]
}
