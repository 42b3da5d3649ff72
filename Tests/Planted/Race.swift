// Two threads that write one variable, which the thread sanitizer must report; without an argument one follows the
// other. script/full --smoke compiles and runs it.
import Glibc

// Unsafe on purpose: the thread sanitizer must report it.
nonisolated(unsafe) var shared = 0

@main enum Race {
    static func begin() -> pthread_t {
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { _ in
                for _ in 0..<1_000 { shared += 1 }
                return nil
            }, nil)
        return thread
    }

    static func main() {
        let isOrdered = CommandLine.arguments.count == 1
        let first = begin()
        if isOrdered { pthread_join(first, nil) }
        let second = begin()
        if !isOrdered { pthread_join(first, nil) }
        pthread_join(second, nil)
        print(shared)
    }
}
