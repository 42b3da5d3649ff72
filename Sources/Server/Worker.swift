import CountersignHTTP

/// One loop, with all that lives on it: its listening sockets, its gateway, its connections to the upstream.
struct Worker {
    let loop: EventLoop
    let listeners: [Listener]

    func drain() {
        for listener in listeners { loop.perform { listener.drain() } }
    }

    func stopAccepting() {
        for listener in listeners { loop.perform { listener.stopAccepting() } }
    }

    func resumeAccepting() {
        for listener in listeners { loop.perform { listener.resumeAccepting() } }
    }

    /// Cuts what is left and ends the loop.
    func stop() {
        for listener in listeners { loop.perform { listener.abort() } }
        loop.stop()
        loop.join()
    }
}
