import CountersignMemory
import Glibc

/// nginx, which asks the gateway about each request (`auth_request`).
package final class Nginx: Sendable {
    package let port: UInt16
    private let process: Locked<ChildProcess?>

    /// The reason why rows with nginx are skipped if ``installed(path:)`` finds none.
    package static let absence = "nginx is not installed: not in PATH, /usr/sbin or /usr/local/sbin"

    /// The path of nginx, searched in `path` and in the folders of Debian and the BSDs, which are in few
    /// users' `PATH`; nil if it is not installed.
    package static func installed(path: String) -> String? {
        let folders = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin"]
        return folders.map { "\($0)/nginx" }.first { access($0, X_OK) == 0 }
    }

    /// Starts to listen. `certificate` is nil without TLS.
    package init(
        program: String, folder: String, gateway: UInt16, backend: UInt16, secret: String,
        certificate pem: (certificate: [UInt8], key: [UInt8])?
    ) throws(LabError) {
        port = try Ports.free()
        try Files.makeFolder(folder)
        if let pem {
            try Files.write(pem.certificate, to: "\(folder)/certificate.pem")
            try Files.write(pem.key, to: "\(folder)/key.pem")
        }
        let configuration = NginxConfiguration(
            folder: folder, port: port, gateway: gateway, backend: backend, secret: secret, isTLS: pem != nil)
        try Files.write(Array(configuration.text.utf8), to: "\(folder)/nginx.conf")
        let started = try ChildProcess(
            [program, "-p", folder, "-c", "\(folder)/nginx.conf", "-e", "\(folder)/errors"],
            environment: CountersignBinary.environment, errors: "\(folder)/complaints")
        process = Locked(started)
        // nginx binds its port before it writes its process id.
        for _ in 0..<600 where access("\(folder)/pid", R_OK) != 0 { usleep(20_000) }
        guard access("\(folder)/pid", R_OK) == 0 else {
            stop()
            let said = (try? Files.read("\(folder)/errors")).map {
                String(decoding: $0.suffix(400), as: UTF8.self)
            }
            throw LabError("\(program) does not listen: \(said ?? "")")
        }
    }

    /// Blocks its thread.
    package func stop() {
        let ending = process.with { process in
            defer { process = nil }
            return process
        }
        ending?.end()
    }
}

/// Examples/decide/nginx.conf without its comments and with the stage's addresses. A copy, because the lab
/// runs where that file does not exist; a test compares the two.
package struct NginxConfiguration: Sendable {
    /// For its files, with nginx's own.
    package var folder: String
    package var port: UInt16
    package var gateway: UInt16
    package var backend: UInt16
    /// The secret that authorizes nginx to ask the gateway.
    package var secret: String
    package var isTLS: Bool

    /// The configuration of one foreground process with its files in ``folder``; nginx writes `pid` once it
    /// listens.
    package var text: String {
        let kept = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
            "\($0)_temp_path \(folder)/\($0);"
        }
        return """
            daemon off; master_process off; pid \(folder)/pid; error_log \(folder)/errors; events {}
            http { access_log off; \(kept.joined(separator: " "))
            \(server)
            }

            """
    }

    private var server: String {
        let certificate = "ssl_certificate \(folder)/certificate.pem; ssl_certificate_key \(folder)/key.pem;"
        let listening = isTLS ? "listen 127.0.0.1:\(port) ssl; \(certificate)" : "listen 127.0.0.1:\(port);"
        return NginxConfiguration.example
            .replacing("listen 127.0.0.1:8080;", with: listening)
            .replacing("127.0.0.1:8443", with: "127.0.0.1:\(gateway)")
            .replacing("127.0.0.1:3000", with: "127.0.0.1:\(backend)")
            .replacing("SECRET", with: secret)
    }

    /// Without comments and empty lines.
    package static let example = #"""
        upstream countersign { server 127.0.0.1:8443; keepalive 32; }
        upstream backend { server 127.0.0.1:3000; keepalive 32; }
        server {
            listen 127.0.0.1:8080;
            location / {
                auth_request /decide;
                auth_request_set $cs_app $upstream_http_countersign_app;
                auth_request_set $cs_release $upstream_http_countersign_release;
                auth_request_set $cs_platform $upstream_http_countersign_platform;
                auth_request_set $cs_version $upstream_http_countersign_version;
                auth_request_set $cs_scheme $upstream_http_countersign_scheme;
                auth_request_set $cs_account $upstream_http_countersign_account;
                auth_request_set $cs_user_id $upstream_http_countersign_user_id;
                auth_request_set $cs_session $upstream_http_countersign_session;
                auth_request_set $cs_client $upstream_http_countersign_client;
                auth_request_set $cs_event $upstream_http_countersign_event;
                auth_request_set $cs_verdict $upstream_http_countersign_verdict;
                auth_request_set $cs_checked $upstream_http_countersign_checked;
                auth_request_set $cs_assertion $upstream_http_countersign_assertion;
                auth_request_set $cs_refusal $upstream_http_countersign_refusal;
                add_header Countersign-Refusal $cs_refusal always;
                proxy_set_header Countersign-App $cs_app;
                proxy_set_header Countersign-Release $cs_release;
                proxy_set_header Countersign-Platform $cs_platform;
                proxy_set_header Countersign-Version $cs_version;
                proxy_set_header Countersign-Scheme $cs_scheme;
                proxy_set_header Countersign-Account $cs_account;
                proxy_set_header Countersign-User-Id $cs_user_id;
                proxy_set_header Countersign-Session $cs_session;
                proxy_set_header Countersign-Client $cs_client;
                proxy_set_header Countersign-Event $cs_event;
                proxy_set_header Countersign-Verdict $cs_verdict;
                proxy_set_header Countersign-Checked $cs_checked;
                proxy_set_header Countersign-Assertion $cs_assertion;
                proxy_set_header Countersign-Unsigned-Parts "";
                proxy_set_header Countersign-Decide "";
                proxy_set_header Host $http_host;
                proxy_set_header X-Forwarded-For $remote_addr;
                proxy_set_header X-Forwarded-Proto $scheme;
                proxy_set_header X-Forwarded-Host $http_host;
                proxy_set_header X-Forwarded-Port "";
                proxy_set_header X-Forwarded-Server "";
                proxy_set_header X-Real-IP "";
                proxy_set_header Forwarded "";
                proxy_set_header Connection "";
                proxy_http_version 1.1;
                proxy_pass http://backend;
            }
            location = /decide {
                internal;
                proxy_pass http://countersign/countersign/v1/decide;
                proxy_pass_request_body off;
                proxy_http_version 1.1;
                proxy_set_header Connection "";
                proxy_set_header Content-Length "";
                proxy_set_header X-Original-Method $request_method;
                proxy_set_header X-Original-URI $request_uri;
                proxy_set_header X-Original-Host $http_host;
                proxy_set_header X-Forwarded-For $remote_addr;
                proxy_set_header X-Forwarded-Proto $scheme;
                proxy_set_header Countersign-Decide "SECRET";
            }
            location /countersign/ {
                proxy_http_version 1.1;
                proxy_set_header Connection "";
                proxy_set_header Host $http_host;
                proxy_set_header X-Forwarded-For $remote_addr;
                proxy_set_header X-Forwarded-Proto $scheme;
                proxy_pass http://countersign;
            }
        }
        """#
}
