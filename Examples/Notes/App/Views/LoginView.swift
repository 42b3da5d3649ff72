import SwiftUI

/// Signs in, or makes an account.
struct LoginView: View {
    let notice: String?
    @EnvironmentObject private var store: NotesStore
    @State private var name = ""
    @State private var password = ""

    var body: some View {
        Form {
            if let notice { Text(notice) }
            Section {
                TextField("Name", text: $name)
                    .textContentType(.username)
                    .textInputAutocapitalization(.never)
                    .autocorrectionDisabled()
                SecureField("Password", text: $password)
                    .textContentType(.password)
            }
            Section {
                Button("Sign in") {
                    Task { await store.model.logIn(name: name, password: password) }
                }
                Button("Create an account") {
                    Task { await store.model.signUp(name: name, password: password) }
                }
            }
            .disabled(store.state.isBusy || name.isEmpty || password.isEmpty)
            MessageView()
        }
    }
}
