import SwiftUI

/// Shows the screen that the model asks for.
struct RootView: View {
    @StateObject private var store: NotesStore

    init(model: NotesModel) { _store = StateObject(wrappedValue: NotesStore(model: model)) }

    var body: some View {
        Group {
            switch store.state.screen {
            case .waiting: WaitingView()
            case .login(let notice): LoginView(notice: notice)
            case .locked: LockView()
            case .home(let account): HomeView(account: account)
            case .updateRequired(let url): UpdateView(url: url)
            }
        }
        .environmentObject(store)
        .task { await store.model.run() }
    }
}

/// The last error, where there is one.
struct MessageView: View {
    @EnvironmentObject private var store: NotesStore

    var body: some View {
        if let message = store.state.message { Text(message).foregroundColor(.red) }
    }
}
