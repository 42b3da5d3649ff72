import CountersignAuthority
import CountersignGate
import CountersignServer
import CountersignWire

/// Inputs and forms that several operations share.
extension APIInput {
    static let app = required("app", as: .positional("APP"), meaning: "the app's name")
    static let key = required("key", as: .positional("KEY_ID"), meaning: "the release's key id")
    static let account = required("account", as: .positional("NAME"), meaning: "the account's name")
    static let settings = optional(
        "settings", as: .assignments("set"), schema: .map(.nullable(.text)),
        meaning: "values by policy key; null restores the default")

    static let changedSettings = required(
        "settings", as: .assignments("set"), schema: settings.schema, meaning: settings.meaning)

    /// Limits of a route, as options of `route set`.
    static let limits: [APIInput] = RouteLimits.names.map { name in
        let isRate = name.hasPrefix("rate-")
        return optional(
            name.replacing("-", with: "_"), as: .option(name),
            schema: isRate ? .name : .integer(0...Int64(RouteLimits.mostBytes)),
            meaning: isRate ? "such as 20/second or 100/minute,burst=20" : "bytes")
    }
}

extension APISchema {
    static let levels = APISchema.choice(RouteRule.Level.allCases.map(\.rawValue))

    static let rule = APISchema.object([
        APIMember("prefix", schema: .text), APIMember("methods", schema: .list(.text)),
        APIMember("require", schema: levels),
        APIMember("enforcement", schema: .nullable(.choice(["enforce", "observe"]))),
        APIMember("observe_until", schema: .nullable(.time)), APIMember("limits", schema: .map(.text)),
    ])
    static let endings = APISchema.list(.text)
    static let maintenance = APISchema.object([
        APIMember(
            "apps",
            schema: .list(
                .object([
                    APIMember("app", schema: .text), APIMember("maintenance", schema: .boolean),
                    APIMember("retry_after", schema: .nullable(.count), meaning: "seconds"),
                ])))
    ])
}

extension APIOperation {
    /// Apps, their policies and their routes.
    static let apps: [APIOperation] = [
        APIOperation(
            "listApps", method: .get, path: "/apps", scope: .appsRead, command: .appList,
            response: .object([
                APIMember(
                    "apps",
                    schema: .list(
                        .object([
                            APIMember("app", schema: .text), APIMember("created", schema: .time),
                            APIMember("releases", schema: .count), APIMember("schemes", schema: .list(.text)),
                            APIMember("maintenance", schema: .boolean),
                            APIMember("observing_until", schema: .nullable(.time)),
                            APIMember("forwarded", schema: .count), APIMember("failed", schema: .count),
                            APIMember("unregistered", schema: .count),
                        ])))
            ])),
        APIOperation(
            "addApp", method: .post, path: "/apps", scope: .appsWrite, command: .appAdd,
            inputs: [
                .app,
                .optional("require", as: .option("require"), schema: .levels, meaning: "of all routes"),
                .settings,
            ], status: 201,
            response: .object([
                APIMember("app", schema: .text), APIMember("created", schema: .time),
                APIMember("routes", schema: .list(.rule)),
            ])),
        APIOperation(
            "getPolicy", method: .get, path: "/apps/{app}/policy", scope: .appsRead, command: .appPolicy,
            inputs: [.app], response: policy),
        APIOperation(
            "changePolicy", method: .patch, path: "/apps/{app}/policy", scope: .appsWrite,
            command: .appPolicy, inputs: [.app, .changedSettings], response: policy, reading: "getPolicy"),
        APIOperation(
            "listMaintenance", method: .get, path: "/maintenance", scope: .appsRead,
            command: .maintenanceStatus, response: .maintenance),
        APIOperation(
            "beginMaintenance", method: .put, path: "/apps/{app}/maintenance", scope: .appsWrite,
            command: .maintenanceOn,
            inputs: [
                .required("app", as: .option("app"), meaning: "the app's name"),
                .optional("retry_after", as: .option("retry-after"), meaning: "such as 10m"),
            ], response: .maintenance),
        APIOperation(
            "endMaintenance", method: .delete, path: "/apps/{app}/maintenance", scope: .appsWrite,
            command: .maintenanceOff,
            inputs: [.required("app", as: .option("app"), meaning: "the app's name")],
            response: .maintenance),
    ]

    private static let policy = APISchema.object([
        APIMember("app", schema: .text),
        APIMember(
            "policy",
            schema: .list(
                .object([
                    APIMember("key", schema: .text), APIMember("value", schema: .text),
                    APIMember("is_set", schema: .boolean), APIMember("default", schema: .text),
                    APIMember("meaning", schema: .text),
                ]))),
    ])

    static let routes: [APIOperation] = [
        APIOperation(
            "listRoutes", method: .get, path: "/apps/{app}/routes", scope: .appsRead, command: .routeList,
            inputs: [.app],
            response: .object([
                APIMember("app", schema: .text), APIMember("enforcement", schema: .text),
                APIMember("routes", schema: .list(.rule)),
            ])),
        APIOperation(
            "setRoute", method: .put, path: "/apps/{app}/routes", scope: .appsWrite, command: .routeSet,
            inputs: [
                .app, .required("prefix", as: .positional("PREFIX"), meaning: "/ or a path such as /v1/news"),
                .required("require", as: .option("require"), schema: .levels, meaning: "what callers prove"),
                .optional(
                    "methods", as: .joined("methods"), schema: .list(.name), meaning: "all without it"),
                .optional(
                    "enforcement", as: .option("enforcement"), meaning: "enforce, observe or observe=14d"),
            ] + APIInput.limits,
            response: .object([APIMember("app", schema: .text), APIMember("route", schema: .rule)]),
            reading: "listRoutes"),
        APIOperation(
            "removeRoute", method: .delete, path: "/apps/{app}/routes", scope: .appsWrite,
            command: .routeRemove,
            inputs: [
                .app, .required("prefix", as: .positional("PREFIX"), meaning: "the rule's path"),
                .optional("methods", as: .option("methods"), meaning: "the rule's methods: GET,POST"),
            ],
            response: .object([APIMember("app", schema: .text), APIMember("removed", schema: .text)]),
            reading: "listRoutes"),
        APIOperation(
            "testRoute", method: .get, path: "/apps/{app}/routes/test", scope: .appsRead,
            command: .routeTest,
            inputs: [
                .app, .required("method", as: .positional("METHOD"), meaning: "GET, POST, …"),
                .required("target", as: .positional("TARGET"), meaning: "a path, with or without a query"),
            ],
            response: .object([
                APIMember("target", schema: .text), APIMember("require", schema: .nullable(.levels)),
                APIMember("observed", schema: .boolean), APIMember("unsigned_pass", schema: .boolean),
                APIMember("rule", schema: .nullable(.rule)), APIMember("refused", schema: .nullable(.text)),
            ])),
    ]
}
