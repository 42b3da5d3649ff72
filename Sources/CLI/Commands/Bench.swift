import CountersignWire

extension Command {
    static let bench = Command(
        words: ["bench"], summary: "measure a verdict of each scheme, in process", options: [.json]
    ) { (run) throws(Fault) in
        throw Fault(.failed, "bench follows with the gate's")
    }
}
