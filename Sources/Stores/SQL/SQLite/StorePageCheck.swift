import CountersignAuthority
import CountersignThreads
import CountersignWire

/// The check of every page of an SQLite file, on a thread of its own with a connection of its own, while the
/// connection that opened the file reads. A change of the file waits for the verdict; what was read must not
/// be used before ``requireSound()`` has returned.
///
/// A file that must be written before it can be read, because it is not at the latest level or not in WAL
/// mode, is checked where it is opened. The check of a PostgreSQL database never begins, and
/// ``requireSound()`` returns at once.
package final class StorePageCheck: Sendable {
    private struct State {
        var hasBegun = false
        /// Nil before the thread has started, and once it was joined.
        var thread: WorkerThreads?
        /// Nil while the pages are being checked.
        var verdict: Result<Void, OperationalError>?
    }

    private let state = Monitor(State())

    package init() {}

    deinit { join() }

    /// Begins the check of the file that `database` has opened, unless it has begun. Throws if it is known
    /// to have failed.
    func begin(beside database: Database) throws(OperationalError) {
        let verdict = state.with { (state) -> Result<Void, OperationalError>? in
            if !state.hasBegun {
                state.hasBegun = true
                do throws(OperationalError) {
                    if try database.canBeReadUnchanged() {
                        state.thread = try start(path: database.path)
                    } else {
                        try database.requireSoundPages()
                        state.verdict = .success(())
                    }
                } catch {
                    state.verdict = .failure(error)
                }
            }
            return state.verdict
        }
        try verdict?.get()
    }

    /// Waits for the verdict. Throws what the check has found; after an error of a reader, too, because a
    /// damaged page can fail a reader with any message.
    package func requireSound() throws(OperationalError) {
        let verdict = state.wait { $0.hasBegun ? $0.verdict : .success(()) }
        join()
        try verdict.get()
    }

    /// Whether every page is known to be sound. Does not wait.
    var hasPassed: Bool {
        state.with { if case .success = $0.verdict { true } else { false } }
    }

    private func start(path: String) throws(OperationalError) -> WorkerThreads {
        // Not `self`, whose last reference would be released on the thread that its deinit joins.
        let state = state
        return try WorkerThreads(purpose: "to check the store's pages on") {
            let verdict = StorePageCheck.verdict(path: path)
            state.with { $0.verdict = verdict }
            state.wakeAll()
        }
    }

    private static func verdict(path: String) -> Result<Void, OperationalError> {
        do throws(OperationalError) {
            let connection = try SQLiteConnection(path: path, access: .reading)
            try Database(connection).requireSoundPages()
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    private func join() {
        let thread = state.with { (state) in
            let thread = state.thread
            state.thread = nil
            return thread
        }
        thread?.join()
    }
}

extension Database {
    /// Throws unless the structure of every page is sound.
    func requireSoundPages() throws(OperationalError) {
        let verdict = try rows("PRAGMA quick_check(1)") { $0.text(0) }
        guard verdict == ["ok"] else { throw SQLiteResultCode.damaged(path) }
    }

    /// Whether the file has all migrations and a write-ahead log, so that opening it writes nothing.
    fileprivate func canBeReadUnchanged() throws(OperationalError) -> Bool {
        guard try schemaLevel() == sqlite?.layout.level else { return false }
        return try rows("PRAGMA journal_mode") { $0.text(0) } == ["wal"]
    }
}

extension SessionDirectory {
    /// Reads every session while `check` looks at the pages of the store's file, and returns once all are
    /// known to be sound.
    package static func load(
        _ deployment: Deployment, keys: ReleaseKeyDirectory, reader: any Store, writer: any StoreWriter,
        lease: NodeLease? = nil, beside check: StorePageCheck
    ) throws(OperationalError) -> SessionDirectory {
        let loaded: SessionDirectory
        do throws(OperationalError) {
            loaded = try SessionDirectory(
                deployment, keys: keys, reader: reader, writer: writer, lease: lease)
        } catch {
            try check.requireSound()
            throw error
        }
        try check.requireSound()
        return loaded
    }
}
