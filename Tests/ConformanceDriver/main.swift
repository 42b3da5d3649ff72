// The SDK as a port under `countersign conformance`: a driver over its public interface, for Tests/Interop.
import Countersign
import CountersignWire
import Foundation

var driver: Driver?
while let line = readLine() {
    let action = Action(try JSONReader.read(Array(line.utf8)))
    if action["do"] == "set-up" { driver = try Driver(action) }
    let answer = await driver?.answer(to: action) ?? ["unsupported": true]
    // Past the buffers of standard output: the other end waits for it.
    FileHandle.standardOutput.write(Data("\(answer.text)\n".utf8))
}
