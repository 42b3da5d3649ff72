/// Passwords as people choose them: a name or a word, a figure behind it. Made of tables of our own, the same at every run, so that guessing
/// can be timed. Not a list of passwords that people were found to have: those are theirs.
package struct WordList: Sendable {
    /// 20,000, no two alike.
    package let all: [String]

    package static let standard = WordList()

    private init() {
        var words: [String] = []
        words.reserveCapacity(WordList.count)
        // The shortest tails first, and all stems under each: the commonest forms stand first, as they do where guessing is a trade.
        outer: for tail in WordList.tails {
            for stem in WordList.stems {
                words.append(stem + tail)
                if words.count == WordList.count { break outer }
            }
        }
        all = words
    }

    /// Any of them.
    package func random() -> String { all.randomElement() ?? all[0] }

    private static let count = 20_000

    /// 40 beginnings by 10 endings.
    private static let stems = beginnings.flatMap { beginning in endings.map { beginning + $0 } }
    private static let beginnings = [
        "an", "be", "ca", "da", "el", "fa", "ga", "ha", "is", "jo", "ka", "la", "ma", "na", "ol", "pa", "ra", "sa",
        "ta",
        "va", "bri", "chri", "dra", "flo", "gre", "kri", "mar", "nor", "pau", "ste", "sun", "star", "moon", "blue",
        "red", "tiger", "dragon", "summer", "winter", "coffee",
    ]
    private static let endings = ["na", "lla", "ri", "to", "nie", "mo", "sha", "ker", "lin", "dy"]

    /// 50, of which each goes with every stem.
    private static let tails =
        ["", "1", "12", "123", "1234", "!", "1!", "01", "007", "99"] + (1980...2019).map(String.init)
}
