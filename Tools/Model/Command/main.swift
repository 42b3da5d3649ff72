// `script/model [--schedules N] [--seed S] [--folder F]`: runs the model of the refresh. Prints the seed and
// the schedule of a failure and exits 1; the same seed gives the same schedule.
import CountersignModel
import Foundation

func value(_ name: String, otherwise: UInt64) -> UInt64 {
    let arguments = CommandLine.arguments
    guard let index = arguments.firstIndex(of: name), index + 1 < arguments.count,
        let number = UInt64(arguments[index + 1])
    else { return otherwise }
    return number
}

let schedules = value("--schedules", otherwise: 100_000)
let first = value("--seed", otherwise: 1)
let folder = FileManager.default.temporaryDirectory
    .appendingPathComponent("countersign-model-\(UUID().uuidString)").path
try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
defer { try? FileManager.default.removeItem(atPath: folder) }
let model = try RefreshModel(folder: folder)
let began = Date()
for number in 0..<schedules {
    do {
        try await model.run(seed: first &+ number)
    } catch {
        print("schedule \(number + 1) of \(schedules): \(error)")
        try? FileManager.default.removeItem(atPath: folder)
        exit(1)
    }
}
let seconds = Date().timeIntervalSince(began)
for (event, count) in model.tally.sorted(by: { $0.key < $1.key }) { print("\(count)\t\(event)") }
print(
    "\(schedules) schedules from seed \(first): nothing broken, \(Int(Double(schedules) / seconds)) a second")
guard model.missing.isEmpty || schedules < 1_000 else {
    print("not reached: \(model.missing.joined(separator: ", "))")
    exit(1)
}
