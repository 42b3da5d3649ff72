// Relays bytes between clients and a backend on the loopback address, one upstream connection for each
// client, on epoll or on io_uring, to compare what both cost (Tools/Benchmarks/relay.py,
// docs/decisions/0092-io-uring.md). Prints `listening`.
//
//     relay ENGINE PORT UPSTREAM-PORT STEPS     relay calibrate
//
// ENGINE is epoll (sends at once), epoll-late (sends at the end of a turn), ring (multishot receives, sends
// at the end of a turn), ring-once (the same with a new receive after each) or ring-receive (multishot
// receives, sends at once by system calls). STEPS is the work for each request (UserWork); `calibrate` prints
// the nanoseconds of a step.
import Glibc

let arguments = CommandLine.arguments.dropFirst()
if arguments == ["calibrate"] {
    print(UserWork.nanosecondsPerStep())
    exit(0)
}
let numbers = arguments.dropFirst().compactMap { Int($0) }
guard arguments.count == 4, numbers.count == 3, let engine = arguments.first,
    let port = UInt16(exactly: numbers[0]), let upstreamPort = UInt16(exactly: numbers[1])
else {
    fail("expected an engine, two ports and a number of steps")
}
let listener = Sockets.listen(port: port)
let work = UserWork(steps: numbers[2])
print("listening")
fflush(nil)
switch (engine, RingRelay.Form(rawValue: engine)) {
case (_, let form?):
    var relay = RingRelay(listener: listener, upstreamPort: upstreamPort, work: work, form: form)
    relay.run()
case ("epoll", _), ("epoll-late", _):
    var relay = EpollRelay(
        listener: listener, upstreamPort: upstreamPort, work: work, sendsLate: engine == "epoll-late")
    relay.run()
default:
    fail("no engine \(engine)")
}
