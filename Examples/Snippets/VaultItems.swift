// Stores an app's own items on the device, beside its session.
import CountersignVault

/// Writes an item and reads it.
func keepATheme() async throws {
    let vault = Vault(.platform)
    let theme = try ItemName(service: "com.example.app", account: "theme")
    try await vault.setText("dark", at: theme)

    switch await vault.text(theme) {
    case .value(let theme): show(theme)
    case .absent: show("light")
    // Nothing is known of the item: leave everything as it is, and try again later.
    case .locked(let why), .failed(let why): show("settings cannot be read: \(why)")
    }
}

/// Writes only if no other writer has changed the item since it was read.
func countAStart(_ vault: Vault) async throws {
    let starts = try ItemName(service: "com.example.app", account: "starts")
    while true {
        let item = try await vault.item(starts).get()
        let count = item?.text.flatMap { Int($0) } ?? 0
        let expected: Vault.Expectation = item.map { .version($0.version) } ?? .absent
        do {
            try await vault.setText(String(count + 1), at: starts, expecting: expected)
            return
        } catch {
            guard error == .changed else { throw error }
        }
    }
}

/// Lists and removes all items.
func forgetEverything(_ vault: Vault) async throws {
    for name in try await vault.names() {
        print(name.service, name.account)
    }
    for account in try await vault.accounts(of: "com.example.app") {
        try await vault.remove(ItemName(service: "com.example.app", account: account), expecting: .anything)
    }
}

/// Performs several steps while no other process, such as the app's extension, changes the vault.
func moveBytes(_ vault: Vault, from old: ItemName, to new: ItemName) async throws {
    try await vault.withLease(within: .seconds(10)) {
        guard let bytes = try await vault.bytes(old).get() else { return }
        let version: ItemVersion = try await vault.setBytes(bytes, at: new)
        guard try await vault.item(new).get()?.version == version else { return }
        try await vault.remove(old)
    }
}

/// Stores contents that other code has prepared.
func keep(_ contents: ItemContents, in vault: Vault) async throws {
    try await vault.set(contents, at: ItemName(service: "com.example.app", account: "contents"))
}

func keepBoth(in vault: Vault) async throws {
    try await keep(.text("gruß"), in: vault)
    try await keep(.bytes([0x89, 0x50, 0x4E, 0x47]), in: vault)
}

/// The errors of a vault.
func explain(_ problem: VaultError) -> String {
    switch problem {
    case .badName(let detail): "expected 1 to \(ItemName.longest) bytes: \(detail)"
    case .locked(let detail): "closed for now: \(detail)"
    case .changed: "another writer has changed the item"
    case .failed(let detail): "cannot be told: \(detail)"
    }
}

func read(_ item: VaultItem) -> [UInt8] { item.bytes }

private func show(_ text: String) { print(text) }
