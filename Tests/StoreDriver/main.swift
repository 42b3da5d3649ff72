// The store for programs that are not written in Swift, so that tests can take its disk away: through the
// writer that a server has, and one line on standard output for each change once it is acknowledged. Not part
// of any product.
//
//   store-driver load DATABASE CALLERS   changes until it is killed or its standard input ends
//   store-driver list DATABASE           what is there
//
// DATABASE is the path of an SQLite file, or postgres://…
import CountersignAuthority
import CountersignSQL
import CountersignWire
import Glibc

func fail(_ text: String) -> Never {
    Line.error(text)
    exit(1)
}

let words = CommandLine.arguments.dropFirst()
do {
    switch Array(words) {
    case let words where words.count == 3 && words[0] == "load":
        guard let callers = Int(words[2]) else { fail("`\(words[2])` is no number of callers") }
        try Load(database: words[1]).run(callers: callers)
    case let words where words.count == 2 && words[0] == "list":
        try Listing(database: words[1]).write()
    default: fail("usage: store-driver load DATABASE CALLERS | list DATABASE")
    }
} catch {
    fail(error.message)
}
