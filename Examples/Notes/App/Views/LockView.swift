import SwiftUI

/// After a start, until Face ID, Touch ID or the passcode has released the device's key.
struct LockView: View {
    @EnvironmentObject private var store: NotesStore

    var body: some View {
        VStack(spacing: 16) {
            Text("Your notes are locked.")
            Button("Unlock") { Task { await store.model.unlock() } }
                .disabled(store.state.isBusy)
            MessageView()
        }
        .task { await store.model.unlock() }
    }
}
