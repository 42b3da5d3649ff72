import CountersignSchemes

/// How much an explanation may cost: it runs where requests are served, and whoever makes mistakes on purpose must not
/// be able to buy more than this with one.
struct Budget {
    /// Hypotheses. Somewhat more than the single mistakes of one request come to; the rest is for pairs.
    private var trials = 320
    /// Bytes of strings to sign: some 10 ms of hashing.
    private var bytes = 4 << 20

    /// Requests of one mistake that a second one is tried on.
    static let kept = 2
    /// Bodies beyond this are not read as JSON or forms, nor written anew.
    static let body = 64 << 10
    /// What a compressed body may become: as much as the gateway holds.
    static let inflated = 1 << 20

    var isSpent: Bool { trials <= 0 || bytes <= 0 }

    /// Verifying under a key pair takes as long as hashing some kilobytes does.
    mutating func spend(on size: Int, _ key: SigningKey? = nil) {
        trials -= key?.publicKey == nil ? 1 : 4
        bytes -= size
    }
}
