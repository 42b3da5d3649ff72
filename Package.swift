// swift-tools-version: 6.2
// One package for server and client. Module names have the prefix `Countersign`, so that they do not
// collide in an app; folders do not have it. Dependencies between targets are acyclic; `script/lint` checks
// them against the imports.
import PackageDescription

let settings: [SwiftSetting] = [
    .enableExperimentalFeature("Lifetimes"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    // A nonisolated async function stays on its caller's executor, so a handler stays on its loop: a change
    // of executor at each await would cost more than the handler's work.
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// A module of this package, such as `CountersignWire` in `Sources/Wire`. A `path` is relative to `Sources`.
func module(
    _ name: String, _ dependencies: [Target.Dependency], path: String? = nil,
    _ settings: [SwiftSetting] = settings
) -> Target {
    .target(
        name: "Countersign\(name)", dependencies: dependencies, path: "Sources/\(path ?? name)",
        swiftSettings: settings)
}

/// A C library of the system: a module map and a shim. Without pkg-config if the headers are in the default
/// folder or unused (docs/decisions/0053-glib-declarations.md): otherwise SwiftPM would warn about missing
/// packages that a build of the server alone does not need.
func library(_ name: String, pkgConfig: String? = nil, apt: String) -> Target {
    .systemLibrary(name: name, path: "Sources/C/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

func tests(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.target(name: "Countersign\(name)")] + dependencies,
        path: "Tests/\(name)Tests",
        swiftSettings: settings)
}

let package = Package(
    name: "countersign",
    products: [
        .library(name: "Countersign", targets: ["Countersign"]),
        .library(name: "CountersignTestKit", targets: ["CountersignTestKit"]),
        .library(name: "CountersignServer", targets: ["CountersignServer"]),
        .executable(name: "countersign", targets: ["CountersignMain"]),
    ],
    targets: [
        library("CCrypto", pkgConfig: "openssl", apt: "libssl-dev"),
        library("CSodium", pkgConfig: "libsodium", apt: "libsodium-dev"),
        library("CEvent", pkgConfig: "libevent_core", apt: "libevent-dev"),
        library("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
        library("CZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),
        library("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
        // Nothing is linked with these: they are loaded when they are used
        // (docs/decisions/0063-libraries-loaded-when-used.md).
        library("CGIO", apt: "libglib2.0-0"),
        library("CPAM", apt: "libpam0g-dev"),
        library("CPQ", apt: "libpq5"),
        library("CLinux", apt: "libc6-dev"),

        // What the modules below share and the standard library provides for newer systems only: inline
        // bytes, spans of arrays, a lock.
        module("Memory", []),
        module("Wire", ["CountersignMemory"]),
        // How the server's threads wait for each other: a monitor, a bounded queue, worker threads.
        module("Threads", ["CountersignMemory", "CountersignWire"]),
        module("Sodium", ["CSodium"]),
        module("Seal", ["CountersignMemory", "CountersignSodium", "CCrypto"]),
        module("Opaque", ["CountersignSeal"]),
        module("Handshake", ["CountersignOpaque", "CountersignSeal", "CountersignWire"]),
        module("Schemes", ["CountersignWire", "CountersignSeal"]),
        module(
            "Gate",
            [
                "CountersignMemory", "CountersignSchemes", "CountersignSeal", "CountersignThreads",
                "CountersignWire", "CLinux", "CZlib",
            ]),
        module(
            "Authority",
            [
                "CountersignGate", "CountersignHandshake", "CountersignMemory", "CountersignOpaque",
                "CountersignSchemes", "CountersignSeal", "CountersignThreads", "CountersignWire", "CLinux",
            ]),
        // The client: sign-up, login, refresh, signed calls. Never imports the gate.
        module(
            "Client",
            [
                "CountersignHandshake", "CountersignOpaque", "CountersignSchemes", "CountersignSeal",
                "CountersignTransport", "CountersignVault", "CountersignWire",
            ]),
        // The vault of a device, and secrets that it releases only on proof of user presence.
        module("Vault", ["CountersignSeal", "CountersignWire", "CGIO", "CPAM"]),
        // The trust in servers: policies, pins and manifests. No TLS library, no network.
        module("Trust", ["CountersignMemory", "CountersignSeal", "CountersignWire"]),
        // Requests over libcurl (URLSession on Apple's platforms) to servers that a trust accepts.
        module(
            "Transport",
            [
                "CountersignTrust", "CountersignMemory", "CountersignSeal", "CountersignWire", "CCurl",
                "CCrypto",
            ]),
        // For tests, including those of apps: transports and vaults with planned failures, clocks that a
        // test moves.
        module(
            "TestKit",
            [
                "CountersignClient", "CountersignMemory", "CountersignTransport", "CountersignTrust",
                "CountersignVault", "CountersignSeal", "CountersignWire",
            ]),
        // The client SDK, which an app imports.
        .target(
            name: "Countersign",
            dependencies: [
                "CountersignClient", "CountersignTransport", "CountersignTrust", "CountersignVault",
                "CountersignHandshake", "CountersignMemory",
                "CountersignOpaque", "CountersignSchemes", "CountersignSeal", "CountersignWire",
            ],
            path: "Sources/SDK", swiftSettings: settings),
        // One store over two drivers, SQLite and PostgreSQL (docs/decisions/0070-postgresql.md).
        module(
            "SQL",
            [
                "CountersignAuthority", "CountersignMemory", "CountersignSeal", "CountersignThreads",
                "CountersignWire", "CPQ", "CSQLite",
            ], path: "Stores/SQL"),
        module(
            "HTTP", ["CountersignMemory", "CountersignThreads", "CountersignWire", "CCrypto", "CEvent"]),
        // The replay guards of several nodes (docs/decisions/0071-redis-replay-guard.md,
        // docs/decisions/0073-postgresql-replay-guard.md).
        module(
            "Replay",
            [
                "CountersignAuthority", "CountersignGate", "CountersignHTTP", "CountersignMemory",
                "CountersignSQL", "CountersignSchemes", "CountersignSeal", "CountersignThreads",
                "CountersignWire",
            ], path: "Stores/Replay"),
        module(
            "Server",
            [
                "CountersignHTTP", "CountersignReplay", "CountersignSQL", "CountersignAuthority",
                "CountersignGate", "CountersignHandshake", "CountersignMemory", "CountersignOpaque",
                "CountersignSchemes", "CountersignSeal", "CountersignThreads", "CountersignTransport",
                "CountersignTrust", "CountersignWire", "CLinux",
            ]),
        // A server on loopback and certificates made in process, for tests and the modules below.
        .target(
            name: "CountersignTestServer",
            dependencies: ["CountersignMemory", "CountersignTrust", "CCrypto"],
            path: "Tools/TestServer", swiftSettings: settings),
        // The attack matrix: attacks on every scheme, live on loopback. Certificates and blocking servers
        // come from TestServer.
        .target(
            name: "CountersignLab",
            dependencies: [
                "Countersign", "CountersignAuthority", "CountersignClient", "CountersignHandshake",
                "CountersignHTTP", "CountersignMemory", "CountersignOpaque", "CountersignSQL",
                "CountersignSchemes", "CountersignSeal", "CountersignTestServer",
                "CountersignTransport", "CountersignTrust", "CountersignVault",
                "CountersignWire", "CCrypto", "CSQLite",
            ],
            path: "Tools/Lab", swiftSettings: settings),
        // Drives a port of the client and judges it: the real gateway behind a proxy that loses and alters
        // responses.
        .target(
            name: "CountersignConformance",
            dependencies: [
                "CountersignAuthority", "CountersignHandshake", "CountersignLab", "CountersignMemory",
                "CountersignOpaque", "CountersignSQL", "CountersignSchemes", "CountersignSeal",
                "CountersignTestServer", "CountersignTrust", "CountersignWire",
            ],
            path: "Tools/Conformance", swiftSettings: settings),
        // Measures judgements, logins, sessions and store writes in process; `countersign bench` runs it.
        .target(
            name: "CountersignBenchmarks",
            dependencies: [
                "CountersignAuthority", "CountersignGate", "CountersignHandshake", "CountersignOpaque",
                "CountersignSQL", "CountersignSchemes", "CountersignSeal", "CountersignServer",
                "CountersignWire",
            ],
            path: "Tools/Benchmarks/InProcess", swiftSettings: settings),
        // A model of the refresh: random schedules over both ends and a man in the middle. `script/model`
        // runs it.
        .target(
            name: "CountersignModel",
            dependencies: [
                "CountersignAuthority", "CountersignClient", "CountersignGate", "CountersignHandshake",
                "CountersignMemory", "CountersignSQL", "CountersignSchemes", "CountersignSeal",
                "CountersignTransport", "CountersignVault", "CountersignWire",
            ],
            path: "Tools/Model/Refresh", swiftSettings: settings),
        // The commands of `countersign`.
        .target(
            name: "CountersignCLI",
            dependencies: [
                "Countersign", "CountersignServer", "CountersignAuthority", "CountersignClient",
                "CountersignGate", "CountersignHandshake", "CountersignHTTP", "CountersignOpaque",
                "CountersignReplay", "CountersignSchemes", "CountersignSeal", "CountersignSQL",
                "CountersignThreads", "CountersignTransport", "CountersignTrust", "CountersignVault",
                "CountersignWire", "CLinux",
            ],
            path: "Sources/CLI",
            resources: [.embedInCode("Console/Assets")], swiftSettings: settings),
        // The target has another name than the binary: on file systems that ignore case, `countersign`
        // collides with the SDK.
        .executableTarget(
            name: "CountersignMain", dependencies: ["CountersignCLI"], path: "Sources/Main",
            swiftSettings: settings),
        // Faults of the server that the lab and the tests must detect (docs/decisions/0031-broken-servers.md).
        .target(
            name: "CountersignFaults",
            dependencies: [
                "CountersignAuthority", "CountersignGate", "CountersignHTTP", "CountersignHandshake",
                "CountersignMemory", "CountersignSQL", "CountersignSchemes", "CountersignSeal",
                "CountersignServer", "CountersignWire",
            ],
            path: "Tools/Faults", swiftSettings: settings),
        // `countersign` with these faults to choose from; never shipped.
        .executableTarget(
            name: "countersign-breakable",
            dependencies: ["CountersignCLI", "CountersignFaults", "CountersignHTTP", "CountersignWire"],
            path: "Tools/Breakable", swiftSettings: settings),
        // The program for development: the lab, the self-test, the judge of clients and the benchmarks
        // (docs/decisions/0096-development-program.md).
        .executableTarget(
            name: "countersign-lab",
            dependencies: [
                "CountersignAuthority", "CountersignBenchmarks", "CountersignCLI", "CountersignConformance",
                "CountersignGate", "CountersignLab", "CountersignSQL", "CountersignSchemes",
                "CountersignSeal", "CountersignServer", "CountersignThreads", "CountersignTransport",
                "CountersignTrust", "CountersignWire",
            ],
            path: "Tools/Program", swiftSettings: settings),

        tests("HTTP", ["CountersignMemory", "CountersignWire", "TestRounds", "Waiting"]),

        // Waits of tests for events; never shipped.
        .target(name: "Waiting", path: "Tests/Waiting", swiftSettings: settings),
        // How often tests with random input repeat, and from which seed; never shipped.
        .target(
            name: "TestRounds", dependencies: ["CountersignWire"], path: "Tests/TestRounds",
            swiftSettings: settings),
        // Databases of a PostgreSQL server, for PostgreSQLTests and ReplayTests; never shipped.
        .target(
            name: "DatabaseFixture", dependencies: ["CountersignMemory", "CountersignSQL"],
            path: "Tests/DatabaseFixture", swiftSettings: settings),
        tests(
            "Replay",
            [
                "CountersignAuthority", "CountersignGate", "CountersignHTTP", "CountersignMemory",
                "CountersignSQL", "CountersignSchemes", "CountersignSeal", "CountersignWire",
                "DatabaseFixture", "TestRounds", "Waiting",
            ]),
        tests("Memory"),
        tests("Threads"),
        tests("Wire", ["TestRounds"]),
        tests("Seal", ["CountersignWire"]),
        tests("Opaque", ["CountersignSeal", "CountersignWire"]),
        tests("Schemes", ["CountersignSeal", "CountersignWire", "TestRounds"]),
        tests(
            "Gate",
            ["CountersignSchemes", "CountersignSeal", "CountersignWire", "ScriptedClock", "TestRounds"]),
        tests(
            "Authority",
            [
                "CountersignSQL", "CountersignGate", "CountersignHandshake", "CountersignMemory",
                "CountersignOpaque", "CountersignSchemes", "CountersignSeal", "CountersignThreads",
                "CountersignWire", "CSQLite", "ScriptedClock", "TestRounds", "Waiting",
            ]),
        tests("Handshake", ["CountersignOpaque", "CountersignSeal", "CountersignWire"]),
        // A small authority and its sessions, for ClientTests and SDKTests; never shipped.
        .target(
            name: "ClientFakes",
            dependencies: [
                "CountersignClient", "CountersignHandshake", "CountersignOpaque", "CountersignSchemes",
                "CountersignSeal", "CountersignWire",
            ],
            path: "Tests/ClientFakes", swiftSettings: settings),
        tests(
            "Client",
            [
                "ClientFakes", "CountersignHandshake", "CountersignOpaque", "CountersignSchemes",
                "CountersignSeal",
                "CountersignTransport", "CountersignVault", "CountersignWire", "TestRounds", "Waiting",
            ]),
        tests(
            "TestKit",
            [
                "Countersign", "CountersignMemory", "CountersignTestServer", "CountersignTransport",
                "CountersignTrust",
                "CountersignVault", "CountersignWire", "Waiting",
            ]),
        tests("Trust", ["CountersignTestServer", "CountersignSeal", "CountersignWire"]),
        tests(
            "Transport",
            [
                "CountersignMemory", "CountersignSeal", "CountersignTestKit", "CountersignTestServer",
                "CountersignTrust", "Waiting",
            ]),
        // A machine's clocks, which a test sets; never shipped.
        .target(
            name: "ScriptedClock", dependencies: ["CountersignGate", "CountersignMemory"],
            path: "Tests/ScriptedClock", swiftSettings: settings),
        // The contract of every store, for SQLiteTests and PostgreSQLTests; never shipped.
        .target(
            name: "StoreContract",
            dependencies: [
                "CountersignAuthority", "CountersignGate", "CountersignHandshake", "CountersignSchemes",
                "CountersignThreads", "CountersignWire", "ScriptedClock",
            ],
            path: "Tests/StoreContract", swiftSettings: settings),
        .testTarget(
            name: "SQLiteTests",
            dependencies: [
                "CSQLite", "CountersignAuthority", "CountersignGate", "CountersignHandshake",
                "CountersignSQL", "CountersignSchemes", "CountersignSeal", "CountersignWire", "ScriptedClock",
                "StoreContract",
            ],
            path: "Tests/SQLiteTests", swiftSettings: settings),
        .testTarget(
            name: "PostgreSQLTests",
            dependencies: [
                "CountersignAuthority", "CountersignFaults", "CountersignGate", "CountersignHandshake",
                "CountersignMemory", "CountersignSQL", "CountersignSchemes", "CountersignSeal",
                "CountersignServer", "CountersignThreads", "CountersignWire", "DatabaseFixture",
                "ScriptedClock", "StoreContract", "Waiting",
            ],
            path: "Tests/PostgreSQLTests", swiftSettings: settings),
        tests(
            "Server",
            [
                "CountersignHTTP", "CountersignAuthority", "CountersignGate", "CountersignHandshake",
                "CountersignOpaque", "CountersignSchemes", "CountersignSeal", "CountersignSQL",
                "CountersignWire", "ScriptedClock", "Waiting",
            ]),
        tests(
            "Lab",
            [
                "Countersign", "CountersignOpaque", "CountersignTestServer", "CountersignSchemes",
                "CountersignSeal",
                "CountersignTransport", "CountersignTrust", "CountersignVault", "CountersignWire", "CCrypto",
                "CSQLite", "Waiting",
            ]),
        tests("Model"),
        tests(
            "Conformance",
            ["CountersignLab", "CountersignSchemes", "CountersignSeal", "CountersignWire"]),
        // The contract of every vault, for VaultTests and test-peers; never shipped.
        .target(
            name: "VaultContract", dependencies: ["CountersignVault", "CountersignSeal"],
            path: "Tests/VaultContract",
            swiftSettings: settings),
        tests("Vault", ["CountersignSeal", "VaultContract"]),
        // The peers that tests in Tests/Interop and Tests/Faults drive, in one program; never shipped.
        .executableTarget(
            name: "test-peers",
            dependencies: [
                "Countersign", "CountersignOpaque", "CountersignSeal", "CountersignTransport",
                "CountersignTrust", "CountersignVault", "CountersignWire", "VaultContract",
            ],
            path: "Tests/Peers", swiftSettings: settings),
        // The sample app without its views, as a command-line program; never shipped.
        .executableTarget(
            name: "notes", dependencies: ["Countersign"], path: "Examples/Notes",
            exclude: [
                "App/NotesApp.swift", "App/NotesStore.swift", "App/Views", "README.md", "backend.py",
                "serve.sh",
            ],
            sources: ["App/Model", "CommandLine"],
            swiftSettings: settings),
        .testTarget(
            name: "NotesTests", dependencies: ["notes", "Countersign", "CountersignTestKit", "Waiting"],
            path: "Tests/NotesTests", swiftSettings: settings),
        .testTarget(
            name: "SDKTests",
            dependencies: [
                "ClientFakes", "Countersign", "CountersignTestKit", "CountersignTestServer",
                "CountersignClient",
                "CountersignHandshake", "CountersignMemory", "CountersignOpaque", "CountersignSchemes",
                "CountersignSeal", "CountersignTransport",
                "CountersignTrust", "CountersignVault", "CountersignWire", "Waiting",
            ],
            path: "Tests/SDKTests", swiftSettings: settings),
        .testTarget(
            name: "CLITests",
            dependencies: [
                "CountersignAuthority", "CountersignCLI", "CountersignClient", "CountersignHTTP",
                "CountersignHandshake", "CountersignSchemes", "CountersignSeal", "CountersignServer",
                "CountersignTransport", "CountersignTrust",
                "CountersignVault",
                "CountersignWire", "ScriptedClock",
            ],
            path: "Tests/CLITests", swiftSettings: settings),
        .testTarget(
            name: "ToolsTests",
            dependencies: [
                "CountersignAuthority", "CountersignCLI", "CountersignLab", "CountersignServer",
                "CountersignWire", "countersign-lab",
            ],
            path: "Tests/ToolsTests", swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)

// This target links only with libFuzzer, so it exists only when script/fuzz asks for it.
if Context.environment["COUNTERSIGN_FUZZ"] == "1" {
    package.targets.append(
        .executableTarget(
            name: "fuzz",
            dependencies: [
                "Countersign",
                "CountersignHTTP", "CountersignReplay", "CountersignServer", "CountersignAuthority",
                "CountersignHandshake",
                "CountersignSchemes", "CountersignOpaque", "CountersignSeal", "CountersignTransport",
                "CountersignTrust", "CountersignVault", "CountersignWire",
            ],
            path: "Fuzz",
            exclude: ["Seeds"],
            swiftSettings: settings))
}

// The timing measurement; exists only when script/timing asks for it.
if Context.environment["COUNTERSIGN_TIMING"] == "1" {
    package.targets.append(
        .executableTarget(
            name: "timing", dependencies: ["CountersignSeal"], path: "Tools/Benchmarks/Timing",
            swiftSettings: settings))
    package.targets.append(
        .executableTarget(
            name: "client-load", dependencies: ["Countersign"], path: "Tools/Benchmarks/ClientLoad",
            swiftSettings: settings))
}

// The long form of the model; exists only when script/model asks for it.
if Context.environment["COUNTERSIGN_MODEL"] == "1" {
    package.targets.append(
        .executableTarget(
            name: "model", dependencies: ["CountersignModel"], path: "Tools/Model/Command",
            swiftSettings: settings))
}

// COUNTERSIGN_TESTS names the test targets to build, separated by commas; targets that they do not need are
// left out, because builds under a sanitizer take long.
if let wanted = Context.environment["COUNTERSIGN_TESTS"] {
    var needed: Set<String> = []
    func need(_ name: String) {
        guard needed.insert(name).inserted, let target = package.targets.first(where: { $0.name == name })
        else {
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
    package.products.removeAll { $0.name != "countersign" || !needed.contains("CountersignMain") }
    package.targets.removeAll { !needed.contains($0.name) }
}

// On Apple's platforms, the package has only the client's targets, without the system's C libraries:
// frameworks replace them. libsodium, as swift-sodium builds it, provides ristretto255, Argon2id and
// XChaCha20-Poly1305, which no framework has. Linux never resolves that dependency.
#if os(macOS)
    let ours: Set = [
        "Countersign", "CountersignClient", "CountersignHandshake", "CountersignMemory", "CountersignOpaque",
        "CountersignSchemes", "CountersignSeal", "CountersignSodium", "CountersignTestKit",
        "CountersignTransport",
        "CountersignTrust",
        "CountersignVault", "CountersignWire", "TestRounds",
    ]
    // Tests that show on a Mac whether the frameworks behave like the libraries on Linux.
    let tests: Set = [
        "MemoryTests", "WireTests", "SealTests", "OpaqueTests", "HandshakeTests", "SchemesTests",
    ]
    // script/floor compiles the SDK for these versions, and reports newer APIs.
    package.platforms = [.macOS(.v13), .iOS(.v16)]
    package.dependencies = [.package(url: "https://github.com/jedisct1/swift-sodium.git", from: "0.9.1")]
    package.products.removeAll { !ours.contains($0.name) }
    package.targets.removeAll { !ours.union(tests).contains($0.name) }
    for target in package.targets {
        target.dependencies.removeAll { dependency in
            switch dependency {
            case .byNameItem(let name, _), .targetItem(let name, _): return !ours.contains(name)
            default: return false
            }
        }
        switch target.name {
        case "CountersignSodium":
            target.dependencies = [.product(name: "Clibsodium", package: "swift-sodium")]
        // Sources that need libcurl and OpenSSL.
        case "CountersignTransport": target.exclude = ["Loop", "TLS"]
        // Tests of RSA and P-384, which only the server supports.
        case "SealTests": target.exclude = ["KeyPairTests.swift"]
        default: break
        }
    }
#endif
