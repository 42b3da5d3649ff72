import CountersignAuthority
import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignThreads
import CountersignWire

/// The key that signs the authority's answers, in memory. The next answer is signed with a key that another
/// process has rotated to.
///
/// Safe to share: the variables are read and written under `lock` only.
final class AnswerKeyCache: @unchecked Sendable {
    /// A class, so that a reader takes a reference to it and copies nothing under the lock.
    private final class Edition: Sendable {
        let credentials: Credentials
        let generation: UInt64

        init(credentials: Credentials, generation: UInt64) {
            self.credentials = credentials
            self.generation = generation
        }
    }

    private let deployment: Deployment
    /// Guards `edition` and `nextAttempt`.
    private let lock = ReadWriteLock()
    private var edition: Edition
    /// After the store could not be read: not read again before this time, in seconds of the monotonic clock,
    /// so that answers do not wait for a store that is down.
    private var nextAttempt: Int64 = 0

    /// Makes the keys if the deployment has none yet.
    init(_ deployment: Deployment) throws(OperationalError) {
        self.deployment = deployment
        edition = try AnswerKeyCache.load(deployment)
    }

    /// The keys of the current generation. If the store cannot be read after a change, the former keys
    /// remain in use: a holder of a leaked former key gains nothing from genuine responses, and clients would
    /// not accept unsigned ones.
    var current: Credentials {
        let held = lock.read { edition }
        if held.generation == deployment.generation.current { return held.credentials }
        let now = EventLoop.monotonicSeconds()
        guard now >= lock.read({ nextAttempt }) else { return held.credentials }
        do {
            let fresh = try AnswerKeyCache.load(deployment)
            // Another thread may have read a later one meanwhile.
            return lock.write {
                if fresh.generation >= edition.generation { edition = fresh }
                return edition.credentials
            }
        } catch {
            lock.write { nextAttempt = now + 1 }
            return held.credentials
        }
    }

    /// Reads the generation before the store: a change between the two reads is then loaded twice, never
    /// missed.
    private static func load(_ deployment: Deployment) throws(OperationalError) -> Edition {
        let generation = deployment.generation.current
        let seed = try deployment.answerKey()
        guard let keyID = KeyID(MessageSignatures.authorityKeyID),
            let key = try? PrivateKey(ed25519Seed: seed)
        else {
            throw OperationalError(.failed, message: "answer key: not an Ed25519 seed")
        }
        return Edition(
            credentials: Credentials(keyID: keyID, key: SigningKey(key)), generation: generation)
    }
}
