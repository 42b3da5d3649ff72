// swift-tools-version: 6.2
// One package, both ends. Module names carry the prefix so that nothing collides in an app that imports us;
// the folders do not. Arrows between targets run one way; `script/lint` checks them against the imports.
import PackageDescription

let settings: [SwiftSetting] = [
    .enableExperimentalFeature("Lifetimes"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    // A handler stays on its loop from one await to the next; looking for another executor at each costs more than it does.
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// For what a server is made of: a debug build can be told to have faults, so that the lab and the tests show that they see them.
let breakable = settings + [.define("SABOTAGE", .when(configuration: .debug))]

/// One of our own modules: `CountersignWire` in `Sources/Wire`.
func module(
    _ name: String, _ dependencies: [Target.Dependency], path: String? = nil, _ settings: [SwiftSetting] = settings
) -> Target {
    .target(
        name: "Countersign\(name)", dependencies: dependencies, path: "Sources/\(path ?? name)",
        swiftSettings: settings)
}

/// One C library of the system: a module map and a shim, nothing else. Without pkg-config where the headers are where all are: SwiftPM
/// would warn whoever builds only the server of packages that he does not need.
func library(_ name: String, pkgConfig: String? = nil, apt: String) -> Target {
    .systemLibrary(name: name, path: "Sources/C/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

func tests(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.target(name: "Countersign\(name)")] + dependencies,
        path: "Tests/\(name)Tests",
        swiftSettings: breakable)
}

let package = Package(
    name: "countersign",
    products: [
        .library(name: "Countersign", targets: ["Countersign"]),
        .library(name: "CountersignTestKit", targets: ["CountersignTestKit"]),
        .library(name: "CountersignServer", targets: ["CountersignServer"]),
        .executable(name: "countersign", targets: ["CountersignCLI"]),
    ],
    targets: [
        library("CCrypto", pkgConfig: "openssl", apt: "libssl-dev"),
        library("CSodium", pkgConfig: "libsodium", apt: "libsodium-dev"),
        library("CEvent", pkgConfig: "libevent_core", apt: "libevent-dev"),
        library("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
        library("CZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),
        library("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
        library("CSecret", pkgConfig: "libsecret-1", apt: "libsecret-1-dev"),
        library("CTPM", apt: "libtss2-dev"),
        library("CPAM", apt: "libpam0g-dev"),
        library("CLinux", apt: "libc6-dev"),

        // What the modules below share, and the standard library has for newer systems only: inline bytes, spans of arrays, a lock.
        module("Memory", []),
        module("Wire", ["CountersignMemory"]),
        module("Sodium", ["CSodium"]),
        module("Seal", ["CountersignMemory", "CountersignSodium", "CCrypto"]),
        module("Opaque", ["CountersignSeal"]),
        module("Handshake", ["CountersignOpaque", "CountersignSeal", "CountersignWire"]),
        module("Schemes", ["CountersignWire", "CountersignSeal"]),
        module("Gate", ["CountersignSchemes", "CountersignSeal", "CountersignWire", "CLinux", "CZlib"], breakable),
        module(
            "Authority",
            [
                "CountersignGate", "CountersignHandshake", "CountersignOpaque", "CountersignSchemes", "CountersignSeal",
                "CountersignWire",
            ], breakable),
        // What a client of ours does: sign-up, login, refresh, signed calls. Never imports the gate.
        module(
            "Client",
            [
                "CountersignHandshake", "CountersignOpaque", "CountersignSchemes", "CountersignSeal",
                "CountersignVault",
                "CountersignWire",
            ]),
        // What a device keeps, and what it gives only to who is there.
        module("Vault", ["CountersignSeal", "CountersignWire", "CPAM", "CSecret", "CTPM"]),
        // Whom to take for a server: policies, pins and manifests. No TLS library, no network.
        module("Trust", ["CountersignMemory", "CountersignSeal", "CountersignWire"]),
        // Requests over libcurl, under a trust.
        module(
            "Transport",
            ["CountersignTrust", "CountersignMemory", "CountersignSeal", "CountersignWire", "CCurl", "CCrypto"]),
        // For tests, an app's too: transports and vaults that fail when told to, clocks that stand still, certificates made in process.
        module(
            "TestKit",
            [
                "CountersignClient", "CountersignMemory", "CountersignTransport", "CountersignTrust",
                "CountersignVault", "CountersignSeal", "CountersignWire", "CCrypto",
            ]),
        // What an app imports: the client SDK.
        .target(
            name: "Countersign",
            dependencies: [
                "CountersignClient", "CountersignTransport", "CountersignTrust", "CountersignVault",
                "CountersignHandshake", "CountersignMemory",
                "CountersignOpaque", "CountersignSchemes", "CountersignSeal", "CountersignWire",
            ],
            path: "Sources/SDK", swiftSettings: settings),
        module("SQLite", ["CountersignAuthority", "CSQLite"], path: "Stores/SQLite"),
        module("HTTP", ["CountersignMemory", "CountersignWire", "CCrypto", "CEvent"]),
        module(
            "Server",
            [
                "CountersignHTTP", "CountersignSQLite", "CountersignAuthority", "CountersignGate",
                "CountersignHandshake", "CountersignMemory", "CountersignOpaque", "CountersignSchemes",
                "CountersignSeal",
                "CountersignWire", "CLinux",
            ], breakable),
        // The attack matrix: every scheme attacked, live, on loopback. Certificates and blocking servers are TestKit's.
        module(
            "Lab",
            [
                "Countersign", "CountersignClient", "CountersignHandshake", "CountersignHTTP", "CountersignOpaque",
                "CountersignSQLite", "CountersignSchemes", "CountersignSeal", "CountersignTestKit",
                "CountersignTransport", "CountersignTrust", "CountersignVault",
                "CountersignWire", "CCrypto", "CSQLite",
            ], breakable),
        // Drives a port of the client, and judges it: the real gateway behind a front that loses and alters answers.
        module(
            "Conformance",
            [
                "CountersignAuthority", "CountersignHandshake", "CountersignLab", "CountersignOpaque",
                "CountersignSQLite", "CountersignSchemes", "CountersignSeal", "CountersignTestKit",
                "CountersignTrust", "CountersignWire",
            ]),
        // A target of another name than the binary's: where file names have no case, `countersign` is the SDK's.
        .executableTarget(
            name: "CountersignCLI",
            dependencies: [
                "Countersign", "CountersignServer", "CountersignAuthority", "CountersignClient",
                "CountersignConformance", "CountersignGate", "CountersignHandshake", "CountersignLab",
                "CountersignOpaque", "CountersignSchemes", "CountersignSeal", "CountersignSQLite", "CountersignHTTP",
                "CountersignTransport", "CountersignTrust", "CountersignVault", "CountersignWire",
            ],
            path: "Sources/CLI", swiftSettings: breakable),

        tests("HTTP", ["CountersignWire"]),

        tests("Memory"),
        tests("Wire"),
        tests("Seal", ["CountersignWire"]),
        tests("Opaque", ["CountersignSeal", "CountersignWire"]),
        tests("Schemes", ["CountersignSeal", "CountersignWire"]),
        tests("Gate", ["CountersignSchemes", "CountersignSeal", "CountersignWire"]),
        tests(
            "Authority",
            [
                "CountersignSQLite", "CountersignGate", "CountersignHandshake", "CountersignOpaque",
                "CountersignSchemes",
                "CountersignSeal", "CountersignWire", "CSQLite",
            ]),
        tests("Handshake", ["CountersignOpaque", "CountersignSeal", "CountersignWire"]),
        tests(
            "Client",
            [
                "CountersignHandshake", "CountersignOpaque", "CountersignSchemes", "CountersignSeal",
                "CountersignVault",
                "CountersignWire",
            ]),
        tests(
            "TestKit",
            [
                "Countersign", "CountersignMemory", "CountersignTransport", "CountersignTrust", "CountersignVault",
                "CountersignWire",
            ]),
        tests("Trust", ["CountersignTestKit", "CountersignSeal", "CountersignWire"]),
        tests("Transport", ["CountersignMemory", "CountersignTestKit", "CountersignTrust", "CountersignSeal"]),
        tests(
            "SQLite",
            [
                "CSQLite", "CountersignAuthority", "CountersignGate", "CountersignHandshake", "CountersignSchemes",
                "CountersignSeal", "CountersignWire",
            ]),
        tests(
            "Server",
            [
                "CountersignHTTP", "CountersignAuthority", "CountersignGate", "CountersignHandshake",
                "CountersignOpaque",
                "CountersignSchemes", "CountersignSeal", "CountersignSQLite", "CountersignWire",
            ]),
        tests(
            "Lab",
            [
                "Countersign", "CountersignOpaque", "CountersignTestKit", "CountersignSchemes", "CountersignSeal",
                "CountersignTransport", "CountersignTrust", "CountersignVault", "CountersignWire", "CCrypto", "CSQLite",
            ]),
        tests(
            "Conformance",
            ["CountersignLab", "CountersignSchemes", "CountersignSeal", "CountersignWire"]),
        // Speaks OPAQUE with other people's libraries in Tests/Interop; never shipped.
        .executableTarget(
            name: "opaque-peer", dependencies: ["CountersignOpaque", "CountersignSeal", "CountersignWire"],
            path: "Tests/OpaquePeer", swiftSettings: settings),
        // Lets tests in Tests/Faults take the disk from under the store; never shipped.
        .executableTarget(
            name: "store-driver",
            dependencies: [
                "CountersignAuthority", "CountersignGate", "CountersignHandshake", "CountersignSQLite",
                "CountersignSchemes", "CountersignSeal", "CountersignWire",
            ],
            path: "Tests/StoreDriver", swiftSettings: settings),
        // What every vault must do; for VaultTests and vault-driver, never shipped.
        .target(
            name: "VaultContract", dependencies: ["CountersignVault", "CountersignSeal"], path: "Tests/VaultContract",
            swiftSettings: settings),
        // Lets tests in Tests/Interop have two processes on one vault, and end one; never shipped.
        .executableTarget(
            name: "vault-driver", dependencies: ["CountersignVault", "CountersignSeal", "VaultContract"],
            path: "Tests/VaultDriver", swiftSettings: settings),
        tests("Vault", ["CountersignSeal", "VaultContract"]),
        // One legacy client, told what to do, for Tests/Interop; never shipped.
        .executableTarget(
            name: "legacy-driver", dependencies: ["Countersign", "CountersignWire"], path: "Tests/LegacyDriver",
            swiftSettings: settings),
        // The sample app without its views, as a command-line program; never shipped.
        .executableTarget(
            name: "notes", dependencies: ["Countersign"], path: "Examples/Notes",
            exclude: [
                "App/NotesApp.swift", "App/NotesStore.swift", "App/Views", "README.md", "backend.py", "serve.sh",
            ],
            sources: ["App/Model", "CommandLine"],
            swiftSettings: settings),
        .testTarget(
            name: "NotesTests", dependencies: ["notes", "Countersign", "CountersignTestKit"],
            path: "Tests/NotesTests", swiftSettings: settings),
        // The SDK as a port under `countersign conformance`, for Tests/Interop; never shipped.
        .executableTarget(
            name: "conformance-driver", dependencies: ["Countersign", "CountersignSeal", "CountersignWire"],
            path: "Tests/ConformanceDriver", swiftSettings: settings),
        // One request over the transport, for Tests/Interop; never shipped.
        .executableTarget(
            name: "transport-driver", dependencies: ["CountersignTransport", "CountersignTrust", "CountersignWire"],
            path: "Tests/TransportDriver", swiftSettings: settings),
        .testTarget(
            name: "SDKTests",
            dependencies: [
                "Countersign", "CountersignTestKit", "CountersignClient", "CountersignHandshake", "CountersignMemory",
                "CountersignOpaque", "CountersignSchemes", "CountersignSeal", "CountersignTransport",
                "CountersignTrust",
                "CountersignVault", "CountersignWire",
            ],
            path: "Tests/SDKTests", swiftSettings: settings),
        .testTarget(
            name: "CLITests",
            dependencies: [
                "CountersignCLI", "CountersignClient", "CountersignHandshake", "CountersignLab", "CountersignSchemes",
                "CountersignSeal", "CountersignTransport", "CountersignTrust", "CountersignVault", "CountersignWire",
            ],
            path: "Tests/CLITests", swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)

// Links only with libFuzzer, so this target is there only when script/fuzz asks for it.
if Context.environment["COUNTERSIGN_FUZZ"] == "1" {
    package.targets.append(
        .executableTarget(
            name: "fuzz",
            dependencies: [
                "Countersign",
                "CountersignHTTP", "CountersignServer", "CountersignAuthority", "CountersignHandshake",
                "CountersignSchemes", "CountersignOpaque", "CountersignSeal", "CountersignTransport",
                "CountersignTrust", "CountersignVault", "CountersignWire",
            ],
            path: "Fuzz",
            exclude: ["Seeds"],
            swiftSettings: settings))
}

// Measures and does nothing else; script/timing asks for it.
if Context.environment["COUNTERSIGN_TIMING"] == "1" {
    package.targets.append(
        .executableTarget(
            name: "timing", dependencies: ["CountersignSeal"], path: "Benchmarks/Timing", swiftSettings: settings))
    package.targets.append(
        .executableTarget(
            name: "client-load", dependencies: ["Countersign"], path: "Benchmarks/ClientLoad", swiftSettings: settings))
}

// Names the test targets that are wanted, by commas; what they do not need is left out. Builds under a sanitizer take long.
if let wanted = Context.environment["COUNTERSIGN_TESTS"] {
    var needed: Set<String> = []
    func need(_ name: String) {
        guard needed.insert(name).inserted, let target = package.targets.first(where: { $0.name == name }) else {
            return
        }
        for dependency in target.dependencies {
            switch dependency {
            case .byNameItem(let name, _), .targetItem(let name, _): need(name)
            default: break
            }
        }
    }
    for name in wanted.split(separator: ",") { need(String(name)) }
    package.products = []
    package.targets.removeAll { !needed.contains($0.name) }
}

// On a host of Apple's there is the client's half alone, without the system's C libraries: frameworks do their part. For ristretto255,
// Argon2id and XChaCha20-Poly1305, which no framework has, comes libsodium as swift-sodium builds it. Linux never resolves that.
#if os(macOS)
    let ours: Set = [
        "Countersign", "CountersignClient", "CountersignHandshake", "CountersignMemory", "CountersignOpaque",
        "CountersignSchemes", "CountersignSeal", "CountersignSodium", "CountersignTestKit", "CountersignTransport",
        "CountersignTrust",
        "CountersignVault", "CountersignWire",
    ]
    // What shows on a Mac whether frameworks do what libraries do here.
    let tests: Set = ["MemoryTests", "WireTests", "SealTests", "OpaqueTests", "HandshakeTests", "SchemesTests"]
    // script/floor compiles the SDK for these, and finds what is newer.
    package.platforms = [.macOS(.v13), .iOS(.v16)]
    package.dependencies = [.package(url: "https://github.com/jedisct1/swift-sodium.git", from: "0.9.1")]
    package.products.removeAll { !ours.contains($0.name) }
    package.targets.removeAll { !ours.union(tests).contains($0.name) }
    for target in package.targets {
        target.dependencies.removeAll { dependency in
            guard case .byNameItem(let name, _) = dependency else { return false }
            return !ours.contains(name)
        }
        switch target.name {
        case "CountersignSodium": target.dependencies = [.product(name: "Clibsodium", package: "swift-sodium")]
        // What is libcurl's and OpenSSL's.
        case "CountersignTransport": target.exclude = ["Loop", "TLS"]
        case "CountersignTestKit": target.exclude = ["TLS"]
        // Of RSA and P-384, which are the server's.
        case "SealTests": target.exclude = ["KeyPairTests.swift"]
        default: break
        }
    }
#endif
