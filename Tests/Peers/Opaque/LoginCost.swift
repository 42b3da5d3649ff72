import CountersignOpaque
import CountersignSeal
import Glibc

/// What one login costs the server: KE1 read, the password evaluated, KE2 made, KE3 read and verified.
enum LoginCost {
    /// Nanoseconds of this thread's own time, the median of 400 logins each: to an account, and to one that
    /// is not there. In turn, so that whatever slows the machine slows both.
    static func serverNanoseconds() throws -> (known: UInt64, unknown: UInt64) {
        let keys = try ServerKeys.random()
        let credential = Array("alice".utf8)
        let parties = Parties(client: .publicKey, server: .publicKey)
        guard let password = Password(Secret(copying: credential.span)),
            let stretching = KeyStretchingFunction.argon2id(
                memory: 8, passes: 1, lanes: 1, salt: [UInt8](repeating: 0, count: 16))
        else { throw Misuse.noPassword }
        let registration = try ClientRegistration(password)
        let response = try keys.respond(to: registration.request, credential: credential)
        let record = try registration.finish(response, as: parties, stretching: stretching).record.bytes

        var known: [UInt64] = []
        var unknown: [UInt64] = []
        for round in 0..<800 {
            let exists = round.isMultiple(of: 2)
            let client = try ClientLogin(password)
            let ke1 = client.ke1.bytes
            let stored = exists ? record : keys.fakeRecord.bytes
            let began = cpuNanoseconds()
            let server = try ServerLogin(
                KE1(ke1), record: RegistrationRecord(stored), credential: credential, as: parties,
                context: .empty,
                keys: keys)
            let ke2 = server.ke2.bytes
            var spent = cpuNanoseconds() - began

            let answer = try? client.finish(KE2(ke2), as: parties, context: .empty, stretching: stretching)
            let ke3 = answer?.ke3.bytes ?? [UInt8](repeating: 0, count: 64)
            let resumed = cpuNanoseconds()
            let sessionKey = try? server.finish(KE3(ke3))
            spent += cpuNanoseconds() - resumed
            guard (sessionKey != nil) == exists else { throw Misuse.nothingBegun }
            if exists { known.append(spent) } else { unknown.append(spent) }
        }
        return (known.sorted()[known.count / 2], unknown.sorted()[unknown.count / 2])
    }

    private static func cpuNanoseconds() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
