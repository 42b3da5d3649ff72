import SwiftUI

/// The notes of the account that is signed in.
struct HomeView: View {
    let account: String
    @EnvironmentObject private var store: NotesStore
    @State private var text = ""

    var body: some View {
        NavigationStack {
            List {
                Section {
                    TextField("New note", text: $text)
                    Button("Add") {
                        Task { if await store.model.add(text) { text = "" } }
                    }
                    .disabled(store.state.isBusy || text.isEmpty)
                    MessageView()
                }
                ForEach(store.state.notes) { note in Text(note.text) }
            }
            .refreshable { await store.model.refresh() }
            .navigationTitle(account)
            .toolbar {
                Button("Sign out") { Task { await store.model.logOut() } }
                    .disabled(store.state.isBusy)
            }
        }
    }
}
