// One legacy client, for tests in Tests/Interop: told by lines of JSON on standard input what to do, it says
// in lines of JSON what came of it, and how it stands.
import Countersign
import CountersignWire
import Foundation

let driver = try Driver(Options(Array(CommandLine.arguments.dropFirst())))
while let line = readLine() {
    let order = Order(try JSONReader.read(Array(line.utf8)).root)
    // Bypasses the buffers of standard output: the driving process waits for each line.
    FileHandle.standardOutput.write(Data("\(await driver.carryOut(order).text)\n".utf8))
}
