// swift-tools-version: 6.2
// An app of the SDK with no traits but those that COUNTERSIGN_TRAITS names, by commas. Built and run by
// script/traits.
import PackageDescription

let names = (Context.environment["COUNTERSIGN_TRAITS"] ?? "").split(separator: ",").map(String.init)

let package = Package(
    name: "traits",
    dependencies: [
        .package(name: "countersign", path: "../..", traits: Set(names.map { .trait(name: $0) }))
    ],
    targets: [
        .executableTarget(
            name: "traits-program", dependencies: [.product(name: "Countersign", package: "countersign")],
            path: "Sources")
    ],
    swiftLanguageModes: [.v6]
)
