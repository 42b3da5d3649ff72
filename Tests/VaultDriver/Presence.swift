import CountersignVault

extension Driver {
    func runPresence(_ command: String, _ words: [String]) throws(VaultProblem) {
        throw .failed("no command \(command) with \(words.count) words")
    }
}
