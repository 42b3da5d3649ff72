// A read past the end of a buffer, which the address sanitizer must report; without an argument it stays inside.
// script/full --smoke compiles and runs it.
@main enum Overflow {
    static func main() {
        let buffer = UnsafeMutablePointer<UInt8>.allocate(capacity: 16)
        buffer.initialize(repeating: 1, count: 16)
        print(buffer[CommandLine.arguments.count == 1 ? 15 : 16])
        buffer.deallocate()
    }
}
