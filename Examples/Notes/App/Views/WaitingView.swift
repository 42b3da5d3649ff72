import SwiftUI

/// Nothing is known of the session yet. A keychain that cannot be read is no reason to show the login screen.
struct WaitingView: View {
    @EnvironmentObject private var store: NotesStore

    var body: some View {
        VStack(spacing: 16) {
            if store.state.isBusy {
                ProgressView()
            } else {
                Text("Your session cannot be read at the moment.")
                Button("Try again") { Task { await store.model.retry() } }
            }
        }
    }
}
