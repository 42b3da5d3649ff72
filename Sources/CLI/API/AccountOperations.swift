import CountersignAuthority
import CountersignServer
import CountersignWire

extension APIOperation {
    static let accounts: [APIOperation] = [
        APIOperation(
            "listAccounts", method: .get, path: "/apps/{app}/accounts", scope: .accountsRead,
            command: .accountList,
            inputs: [
                .app,
                .optional(
                    "limit", as: .option("limit"), schema: .integer(1...500), meaning: "at most so many"),
                .optional(
                    "after", as: .option("after"), schema: .count, meaning: "`next` of the page before"),
            ],
            response: .object([
                APIMember("app", schema: .text), APIMember("accounts", schema: .list(.record)),
                APIMember("next", schema: .nullable(.count)),
            ])),
        APIOperation(
            "addAccount", method: .post, path: "/apps/{app}/accounts", scope: .accountsWrite,
            command: .accountAdd,
            inputs: [
                .app, .account,
                .optional(
                    "password", as: .standardInput(flag: "password-stdin"),
                    meaning: "without one, a reset code lets its owner set a password"),
                .optional(
                    "legacy", as: .option("legacy"), meaning: "the rung of its clients; with a password"),
                .optional("user_id", as: .option("user-id"), schema: .count, meaning: "the backend's number"),
            ], status: 201, response: account),
        APIOperation(
            "getAccount", method: .get, path: "/apps/{app}/accounts/{account}", scope: .accountsRead,
            command: .accountShow, inputs: [.app, .account], response: .record),
        APIOperation(
            "removeAccount", method: .delete, path: "/apps/{app}/accounts/{account}", scope: .accountsWrite,
            command: .accountRemove, inputs: [.app, .account], response: ending),
        APIOperation(
            "lockAccount", method: .put, path: "/apps/{app}/accounts/{account}/lock", scope: .accountsWrite,
            command: .accountLock, inputs: [.app, .account], response: ending),
        APIOperation(
            "unlockAccount", method: .delete, path: "/apps/{app}/accounts/{account}/lock",
            scope: .accountsWrite, command: .accountUnlock, inputs: [.app, .account], response: .record),
        APIOperation(
            "resetAccount", method: .post, path: "/apps/{app}/accounts/{account}/reset",
            scope: .accountsWrite, orScope: .accountsRecover, command: .accountReset,
            inputs: [
                .app, .account, .optional("valid", as: .option("valid"), meaning: "30m, 1h, at most 24h"),
                .optional(
                    "if_verified", as: .flag("if-verified"), schema: .boolean,
                    meaning: "refuse if the account is not verified"),
            ],
            status: 201,
            response: .object([
                APIMember("app", schema: .text), APIMember("account", schema: .text),
                APIMember("reset_code", schema: .text), APIMember("until", schema: .time),
            ])),
        APIOperation(
            "verifyAccount", method: .put, path: "/apps/{app}/accounts/{account}/verification",
            scope: .accountsWrite, command: .accountVerify,
            inputs: [.app, .account], response: verification),
        APIOperation(
            "undoVerification", method: .delete, path: "/apps/{app}/accounts/{account}/verification",
            scope: .accountsWrite, command: .accountVerify,
            inputs: [.app, .account], fixedWords: ["--undo"], response: verification),
        APIOperation(
            "makeCode", method: .post, path: "/apps/{app}/accounts/{account}/codes",
            scope: .accountsWrite, orScope: .accountsVerify, command: .accountCode,
            inputs: [
                .app, .account, purpose,
                .optional("valid", as: .option("valid"), meaning: "30m, 1h, at most 24h (default: 15m)"),
            ],
            status: 201,
            response: .object([
                APIMember("app", schema: .text), APIMember("account", schema: .text),
                APIMember("purpose", schema: .text), APIMember("id", schema: .text),
                APIMember("code", schema: .text), APIMember("until", schema: .time),
            ])),
        APIOperation(
            "redeemCode", method: .post, path: "/apps/{app}/accounts/{account}/codes/redeem",
            scope: .accountsWrite, orScope: .accountsVerify, command: .accountRedeem,
            inputs: [
                .app, .account, purpose,
                .required("code", as: .standardInput(flag: "code-stdin"), meaning: "what was entered"),
                .optional(
                    "id", as: .option("id"),
                    meaning: "the code's id; without it, a wrong code costs each code of the purpose a try"),
            ],
            response: .object([
                APIMember("app", schema: .text), APIMember("account", schema: .text),
                APIMember("purpose", schema: .text), APIMember("accepted", schema: .boolean),
                APIMember("reason", schema: .nullable(.choice(["wrong", "none", "limited"]))),
                APIMember("tries_left", schema: .nullable(.count)),
            ])),
        APIOperation(
            "exportAccount", method: .get, path: "/apps/{app}/accounts/{account}/export",
            scope: .accountsRead, command: .accountExport, inputs: [.app, .account], response: .record),
        APIOperation(
            "eraseAccount", method: .post, path: "/apps/{app}/accounts/{account}/erase",
            scope: .accountsWrite, command: .accountErase, inputs: [.app, .account], fixedWords: ["--yes"],
            response: .object([
                APIMember("app", schema: .text), APIMember("account", schema: .text),
                APIMember("erased", schema: .boolean), APIMember("ended_sessions", schema: .endings),
                APIMember("absent_from_files", schema: .boolean), APIMember("needs_vacuum", schema: .boolean),
            ])),
        APIOperation(
            "setUserID", method: .put, path: "/apps/{app}/accounts/{account}/user-id", scope: .accountsWrite,
            command: .accountUserID,
            inputs: [
                .app, .account,
                .required("user_id", as: .positional("ID"), schema: .count, meaning: "the backend's number"),
            ], response: numbered),
        APIOperation(
            "clearUserID", method: .delete, path: "/apps/{app}/accounts/{account}/user-id",
            scope: .accountsWrite, command: .accountUserID, inputs: [.app, .account], fixedWords: ["none"],
            response: numbered),
        APIOperation(
            "listDevices", method: .get, path: "/apps/{app}/accounts/{account}/devices",
            scope: .accountsRead, command: .accountDevices, inputs: [.app, .account],
            response: .object([
                APIMember("app", schema: .text), APIMember("account", schema: .text),
                APIMember("devices", schema: .list(.record)),
            ])),
        APIOperation(
            "forgetDevice", method: .delete, path: "/apps/{app}/accounts/{account}/devices/{device}",
            scope: .sessionsWrite, command: .accountForgetDevice,
            inputs: [.app, .account, .required("device", as: .positional("DEVICE"), meaning: "its id")],
            response: .object([
                APIMember("app", schema: .text), APIMember("account", schema: .text),
                APIMember("forgotten", schema: .record),
            ])),
    ]

    static let sessions: [APIOperation] = [
        APIOperation(
            "listSessions", method: .get, path: "/apps/{app}/sessions", scope: .sessionsRead,
            command: .sessionList,
            inputs: [
                .app, .optional("account", as: .positional("NAME"), meaning: "of this account alone"),
                .optional(
                    "ended", as: .flag("ended"), schema: .boolean, meaning: "those that have ended, too"),
                .optional(
                    "limit", as: .option("limit"), schema: .integer(1...500), meaning: "at most so many"),
            ],
            response: .object([
                APIMember("app", schema: .text), APIMember("sessions", schema: .list(.record)),
            ])),
        APIOperation(
            "revokeSession", method: .delete, path: "/sessions/{session}", scope: .sessionsWrite,
            command: .sessionRevoke,
            inputs: [
                .required("session", as: .positional("ID"), meaning: "the session's id"),
                .optional(
                    "keep_device", as: .flag("keep-device"), schema: .boolean,
                    meaning: "the device stays known to the account"),
            ],
            response: .object([
                APIMember("session", schema: .text), APIMember("revoked", schema: .boolean),
                APIMember("forgot_device", schema: .boolean),
            ])),
    ]

    private static let account = APISchema.object([
        APIMember("app", schema: .text), APIMember("account", schema: .text),
        APIMember("number", schema: .count), APIMember("user_id", schema: .nullable(.count)),
        APIMember("state", schema: .text), APIMember("credential", schema: .text),
        APIMember("created", schema: .time),
    ])

    private static let purpose = APIInput.optional(
        "purpose", as: .option("purpose"),
        meaning: "what the code is good for: \(CodePurpose.expected) (default: verify)")

    private static let verification = APISchema.object([
        APIMember("app", schema: .text), APIMember("account", schema: .text),
        APIMember("verified", schema: .nullable(.time)),
    ])

    private static let ending = APISchema.object([
        APIMember("app", schema: .text), APIMember("account", schema: .text),
        APIMember("state", schema: .text), APIMember("ended_sessions", schema: .endings),
    ])

    private static let numbered = APISchema.object([
        APIMember("app", schema: .text), APIMember("account", schema: .text),
        APIMember("user_id", schema: .nullable(.count)), APIMember("ended_sessions", schema: .endings),
    ])
}
