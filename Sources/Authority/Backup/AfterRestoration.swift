/// What happens to a kind of ending when an earlier copy of the store becomes the deployment's store again:
/// it would otherwise not have ended. A test fails for a kind that is not listed here.
package enum AfterRestoration: Sendable, Equatable {
    /// Nothing ends by it, or what ends is no right.
    case nothing
    /// All of the kind end, whether they had ended or not. With the lost changes of a standby, only those
    /// that they concern.
    case endedAll
    /// It ends again, from the former store or the lost changes.
    case repeated
    /// It does not end again, for this reason.
    case exempt(String)

    /// For the page; empty for ``nothing``.
    package var text: String {
        switch self {
        case .nothing: ""
        case .endedAll: "all of the kind are ended or removed"
        case .repeated: "ends again with `--erasures-from` or `--lost`"
        case .exempt(let reason): reason
        }
    }

    fileprivate static let setting = AfterRestoration.exempt(
        "is as in the copy: change it again; `audit list` of the former store names it")
    fileprivate static let rotation = AfterRestoration.exempt(
        "the former key is in use again: rotate it again if others may know it")
    fileprivate static let credential = AfterRestoration.exempt(
        "is that of the copy: reset the passwords that may be known")
    fileprivate static let releaseKey = AfterRestoration.exempt(
        "the former key is accepted again: promote or drop it again, or retire the release")
    fileprivate static let file = AfterRestoration.exempt("is in the data folder, and not in the copy")
}

extension AuditAction {
    /// What a restoration does about what such an action has ended.
    package var afterRestoration: AfterRestoration {
        switch self {
        case .appAdd, .appMessages, .releaseAdd, .releaseUndo, .nextKeyAdd, .masterKeyBegin, .accountAdd,
            .accountImport, .accountRegister, .accountUnlock, .accountExport, .replayConfirmClock,
            .clockDoubt, .clockTrust, .nodesChange, .nodesRejectReport, .rowsAccept, .backupRestore,
            .tokenAdd, .consoleSignIn, .webhookAdd:
            .nothing
        case .accountReset, .accountCode, .accountRedeem, .accountForgetDevice, .sessionRevoke,
            .sessionReuse:
            .endedAll
        case .accountLock, .accountRemove, .accountErase, .accountUserID, .accountVerify, .releaseRetire,
            .webhookRemove:
            .repeated
        case .appPolicy, .releasePolicy, .pinsPublish: .setting
        case .assertionKeysRotate, .answerKeyRotate, .registrationKeyRotate, .masterKeyRotate,
            .webhookKeyRotate:
            .rotation
        case .accountPassword, .accountUpgrade, .accountLegacy: .credential
        case .nextKeyPromote, .nextKeyDrop: .releaseKey
        case .tokenRevoke, .consoleSignOut: .file
        case .storeMove: .exempt("a store that was moved is refused")
        }
    }
}

extension AuthenticatedTable {
    /// What a restoration does about rows that were changed or removed since the copy, by the names of all
    /// tables. For ``meta``, ``MetaName/afterRestoration`` tells.
    package static let afterRestoration: [String: AfterRestoration] = [
        "account": .repeated, "erased_name": .repeated, "account_verification": .repeated,
        "release": .repeated, "release_rollout": .repeated, "session": .endedAll, "upload_ticket": .endedAll,
        "known_device": .endedAll, "account_code": .endedAll, "pending_login": .endedAll, "app": .nothing,
        "app_setting": .setting, "release_setting": .setting, "meta": .repeated,
        "webhook_delivery": .exempt("is delivered again, with the same id"),
        "idempotent_request": .exempt("keyed requests are refused while clients may repeat them"),
        "row_digest": .nothing, "audit": .nothing, "revision": .nothing, "session_change": .nothing,
        "webhook_account": .nothing, "webhook_dropped": .nothing, "meter": .nothing,
        "idempotent_use": .nothing, "sqlite_sequence": .nothing, "layout": .nothing, "writing": .nothing,
        "generation": .nothing, "node": .nothing, "pending_login_count": .nothing,
        "login_limit": .exempt("guesses are counted from the copy's numbers"),
    ]
}

extension MetaName {
    package var afterRestoration: AfterRestoration {
        switch self {
        case .webhooks: .repeated
        case .answerKey, .assertionKeys, .registrationKey, .webhookKeys, .masterKeyCheck, .masterKeyNextCheck,
            .sealSlot:
            .rotation
        case .pinManifests: .setting
        case .replayFile, .replayEpoch:
            .exempt("signatures that may have been used are refused by the next start")
        case .movedTo, .movedFrom: .exempt("a store that was moved is refused")
        case .auditHead, .sharedSettings, .replayConfirmation, .opaqueKeys, .bearerKey, .tombstoneKey,
            .webhookStages, .meterBegan, .writeCheck, .rowsAccepted, .restoredInPlace, .reportedHead:
            .nothing
        }
    }
}
