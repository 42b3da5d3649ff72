import CountersignAuthority
import CountersignSQL
import CountersignWire
import Glibc

/// The store for programs that are not written in Swift, so that tests can take its disk away: through the
/// writer that a server has, and one line on standard output for each change once it is acknowledged.
///
///     test-peers store load DATABASE CALLERS   changes until it is killed or its standard input ends
///     test-peers store list DATABASE           what it contains
///
/// DATABASE is the path of an SQLite file, or postgres://…
enum StorePeer {
    static func run(_ words: [String]) -> Never {
        do {
            switch (words.first, words.count) {
            case ("load", 3):
                guard let callers = Int(words[2]) else { fail("'\(words[2])' is not a number of callers") }
                try StoreLoad(database: words[1]).run(callers: callers)
            case ("list", 2): try StoreListing(database: words[1]).write()
            default: fail("usage: test-peers store load DATABASE CALLERS | list DATABASE")
            }
        } catch {
            fail(error.message)
        }
        exit(0)
    }

    private static func fail(_ text: String) -> Never {
        Line.error(text)
        exit(1)
    }
}
